package report

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is one small plot of a sheet: a curve on axes of its own.
type panel struct {
	title, note string
	from        string // the call that tells it from another of the same title; or ""
	colour      color.NRGBA
	x, y        []float64
	reserved    []float64    // nil where none is drawn
	slope       *trend.Slope // of y, from warm on; nil where none is drawn
	warm        float64
}

// maxPanels is how many small plots a sheet has at most, panelColumns how many of
// them stand in a row.
const maxPanels, panelColumns = 12, 3

// Sheet draws small plots, one a site: those of the findings, and then the largest
// sites, twelve in all, each on a scale of its own with its verdict and rate. It
// fails where Plot does.
func Sheet(w io.Writer, format PlotFormat, r *diff.Result, o PlotOptions) error {
	if err := format.known(); err != nil {
		return err
	}
	s := r.Series
	if s == nil || len(s.Marks) == 0 || len(s.Sites) == 0 {
		return fmt.Errorf("nothing to plot: the run has no marks with a site")
	}
	title := Printable(o.Title)
	if title == "" {
		title = Headline(r)
	}
	panels := sitePanels(r)
	if len(panels) == 0 {
		return fmt.Errorf("nothing to plot: no site ever holds a byte")
	}
	return writeSheet(w, format, title, panels, o)
}

func sitePanels(r *diff.Result) []panel {
	_, size, axis := drawn(r.Series.Axis())
	var panels []panel
	var of []*diff.Row // panels
	drawn := make(map[*diff.Row]struct{})
	add := func(rows []*diff.Row, p panel) {
		var total []snapshot.Bytes
		for _, row := range rows {
			drawn[row] = struct{}{}
			site := r.Series.Site(row)
			if site == nil {
				continue
			}
			if total == nil {
				total = make([]snapshot.Bytes, len(site.Bytes))
			}
			for i, b := range site.Bytes {
				total[i] += b
			}
		}
		if total == nil || slices.Max(total) == 0 || len(panels) == maxPanels {
			return
		}
		for _, i := range highest(total, maxPoints/panelColumns) {
			p.x, p.y = append(p.x, axis[i]), append(p.y, float64(total[i]))
		}
		p.warm = axis[min(r.Series.WarmUp(), len(axis)-1)]
		panels, of = append(panels, p), append(of, rows[0])
	}
	colours := map[diff.Verdict]color.NRGBA{diff.Leak: leakColours[0], diff.Inconclusive: leakColours[1]}
	for i := range r.Findings {
		f := &r.Findings[i]
		c, ok := colours[f.Verdict]
		if !ok {
			c = restLine
		}
		p := panel{title: shortPlace(f.Rows[0], f.Headline), note: string(f.Verdict), colour: c}
		if text := bytesRate(f.Rate); text != "" {
			p.note += ": " + text
		}
		if text := interval(readable(f.Rate).Bytes, snapshot.FormatBytes); text != "" {
			p.note += " (" + text + ")"
		}
		if f.Rate.Unit == r.Series.Axis().Unit && ok {
			slope := multiplied(f.Rate.Bytes, size)
			p.slope = &slope
		}
		add(f.Rows, p)
	}
	var rows []*diff.Row
	for i := range r.Rows {
		if _, ok := drawn[&r.Rows[i]]; !ok {
			rows = append(rows, &r.Rows[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *diff.Row) int { return cmp.Compare(b.After.Bytes, a.After.Bytes) })
	for _, row := range rows[:min(len(rows), maxPanels)] {
		add([]*diff.Row{row}, panel{title: shortPlace(row, diff.Headline(row.Frames)), note: "no growth: " + row.After.Bytes.String(), colour: restLine})
	}
	names := make([]string, len(panels))
	for i := range panels {
		names[i] = panels[i].title
	}
	for i, from := range callsApart(names, of) {
		panels[i].from = from
	}
	return panels
}

// highest chooses at most limit marks, of each stretch the one with most.
func highest(values []snapshot.Bytes, limit int) []int {
	meters := make([]snapshot.Meters, len(values))
	for i, v := range values {
		meters[i].Allocated = v
	}
	return thinned(meters, limit)
}

// RankSheet draws small plots, one a rank: its allocated bytes below its reserved
// ones, all on one scale, so that the rank that is unlike the others is seen. It
// fails where there is nothing to draw.
func RankSheet(w io.Writer, format PlotFormat, ranks []RankResult, o PlotOptions) error {
	if err := format.known(); err != nil {
		return err
	}
	var panels []panel
	title := Printable(o.Title)
	leaking := 0
	for _, rank := range ranks {
		if rank.Result == nil {
			continue
		}
		c, err := newChart(rank.Result, PlotOptions{Device: o.Device}, maxPoints/panelColumns)
		if err != nil {
			continue // a rank without meters has no plot
		}
		p := panel{title: fmt.Sprintf("rank %d", rank.Rank), colour: restLine, x: c.x, reserved: c.reserved, y: make([]float64, len(c.x))}
		for _, b := range c.bands {
			for i, y := range b.y {
				p.y[i] += y
			}
		}
		_, p.note = state(rank.Result)
		if rank.Result.Leaks() > 0 {
			leaking++
			f := &rank.Result.Findings[0]
			p.colour = leakColours[0]
			p.note += ": " + bytesRate(f.Rate) + " at " + shortPlace(f.Rows[0], f.Headline)
		}
		panels = append(panels, p)
	}
	if len(panels) == 0 {
		return fmt.Errorf("nothing to plot: no rank has marks with a device")
	}
	if title == "" {
		title = fmt.Sprintf("%d of %s leak", leaking, count(int64(len(ranks)), "rank"))
	}
	top := 0.0
	for _, p := range panels {
		top = max(top, slices.Max(p.y))
		if p.reserved != nil {
			top = max(top, slices.Max(p.reserved))
		}
	}
	if more := len(panels) - maxPanels; more > 0 {
		title += fmt.Sprintf(" (the first %d are drawn)", maxPanels)
		panels = panels[:maxPanels]
	}
	return writeSheet(w, format, title, panels, o, top)
}

// writeSheet lays panels out, each up to the top that is given, or its own.
func writeSheet(w io.Writer, format PlotFormat, title string, panels []panel, o PlotOptions, top ...float64) error {
	columns := min(panelColumns, len(panels))
	rows := (len(panels) + columns - 1) / columns
	if o.Height == 0 {
		o.Height = 140 + 290*rows
	}
	width, height := o.size()
	return picture(w, format, width, height, func(page draw.Canvas) {
		y := heading(page, title, "")
		tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: 14, PadY: 10, PadLeft: pageMargin, PadRight: pageMargin, PadBottom: pageMargin, PadTop: page.Max.Y - y}
		for i := range panels {
			high := slices.Max(append(slices.Clone(top), 0))
			if high == 0 {
				high = slices.Max(panels[i].y)
			}
			panels[i].draw(tiles.At(page, i%columns, i/columns), max(high*1.08, 1))
		}
	})
}

func (p *panel) draw(area draw.Canvas, top float64) {
	title, note := style(smallSize, true, inkColour), style(smallSize-1, false, darker(p.colour))
	y := area.Max.Y - smallSize
	name := strings.TrimSpace(p.title + " " + p.from)
	if last := strings.LastIndexAny(p.from, "←→"); last > 0 && title.Width(name) > area.Size().X {
		name = p.title + " … " + p.from[last:] // the outermost call is the one that differs
	}
	area.FillText(title, vg.Point{X: area.Min.X, Y: y}, cutTo(title, name, area.Size().X))
	y -= smallSize + 1
	area.FillText(note, vg.Point{X: area.Min.X, Y: y}, cutTo(note, p.note, area.Size().X))
	small := plot.New()
	small.BackgroundColor = nil
	small.X.Min, small.X.Max, small.Y.Min, small.Y.Max = p.x[0], p.x[len(p.x)-1], 0, top
	if small.X.Min == small.X.Max {
		small.X.Max++
	}
	small.X.Tick.Marker, small.Y.Tick.Marker = fewTicks{stepTicks{}}, fewTicks{byteTicks{}}
	plain(small)
	small.Add(p)
	small.Draw(draw.Crop(area, 0, -6, 0, y-4-area.Max.Y))
}

// Plot draws the curve; it implements plot.Plotter.
func (p *panel) Plot(canvas draw.Canvas, on *plot.Plot) {
	toX, toY := on.Transforms(&canvas)
	line := func(y []float64) []vg.Point {
		points := make([]vg.Point, len(y))
		for i := range y {
			points[i] = vg.Point{X: toX(p.x[i]), Y: toY(y[i])}
		}
		return points
	}
	for _, t := range on.Y.Tick.Marker.Ticks(on.Y.Min, on.Y.Max) {
		if t.Value > 0 {
			canvas.StrokeLine2(draw.LineStyle{Color: gridColour, Width: 0.5}, canvas.Min.X, toY(t.Value), canvas.Max.X, toY(t.Value))
		}
	}
	edge := line(p.y)
	fill := p.colour
	fill.A = 70
	canvas.FillPolygon(fill, append([]vg.Point{{X: edge[0].X, Y: toY(0)}}, append(slices.Clone(edge), vg.Point{X: edge[len(edge)-1].X, Y: toY(0)})...))
	canvas.StrokeLines(draw.LineStyle{Color: p.colour, Width: 1.25}, edge)
	if from := slices.IndexFunc(p.x, func(x float64) bool { return x >= p.warm }); p.slope != nil && from >= 0 && len(p.x)-from >= 3 {
		drawSlope(canvas, *p.slope, p.x[from:], p.y[from:], func(x, y float64, _ int) vg.Point {
			return vg.Point{X: toX(x), Y: toY(min(y, on.Y.Max))}
		})
	}
	if p.reserved != nil {
		canvas.StrokeLines(draw.LineStyle{Color: reserveLine, Width: 1}, line(p.reserved))
	}
}

// fewTicks labels every second tick at most where there are many.
type fewTicks struct{ of plot.Ticker }

// Ticks implements plot.Ticker.
func (f fewTicks) Ticks(low, high float64) []plot.Tick {
	ticks := f.of.Ticks(low, high)
	if len(ticks) < 5 {
		return ticks
	}
	for i := range ticks {
		if i%2 == 1 {
			ticks[i].Label = ""
		}
	}
	return ticks
}

// cutTo leaves out the end of what is wider than the room.
func cutTo(style draw.TextStyle, text string, room vg.Length) string {
	runes := []rune(text)
	for n := len(runes); n > 1 && style.Width(text) > room; n-- {
		text = string(runes[:n-1]) + "…"
	}
	return text
}
