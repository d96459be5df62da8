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
	"github.com/memdiag/memdiag/snapshot/frame"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is one small plot of a sheet: a curve with its own axes.
type panel struct {
	title, note string
	from        string // a call that distinguishes it from another panel of the same title; or ""
	colour      color.NRGBA
	x, y        []float64
	reserved    []float64    // nil if not drawn
	slope       *trend.Slope // of y, from warm on; nil if not drawn
	warm        float64
	state       string // verdict on the rank, from state; "" for a site
}

// urgency orders ranks: those with leaks, those with possible leaks, and the rest.
func (p *panel) urgency() int {
	return slices.Index([]string{"leak", "inconclusive", "clean"}, p.state)
}

// maxPanels is how many small plots a sheet has at most, and panelColumns how many are in a row.
const maxPanels, panelColumns = 12, 3

// Sheet draws small plots, one per site: the process if it grows by itself, the findings, and then the sites that move most; twelve at
// most. Each has its own scale, its verdict and its rate. Sites that stay the same only fill the last row. It says how many are left
// out. It returns an error in the same cases as Plot.
func Sheet(w io.Writer, format PlotFormat, r *diff.Result, o PlotOptions) error {
	if err := format.known(); err != nil {
		return err
	}
	s := r.Series
	if s == nil || len(s.Marks) == 0 || len(s.Sites) == 0 {
		return fmt.Errorf("nothing to plot: no snapshot of the run has a call site")
	}
	title := Printable(o.Title)
	if title == "" {
		title = Headline(r)
	}
	panels, left := sitePanels(r)
	if len(panels) == 0 {
		return fmt.Errorf("nothing to plot: no call site ever holds a byte")
	}
	unit, _, _ := drawn(r.Series.Axis)
	about := fmt.Sprintf("live bytes by %s, each plot on a scale of its own", unit)
	if left.moving > 0 {
		about += " · " + count(int64(left.moving), "more call site") + " not drawn"
	} else if left.still > 0 {
		about += " · not drawn: " + count(int64(left.still), "unchanged call site") + ", " + left.bytes.String()
	}
	return writeSheet(w, format, title, about, panels, o)
}

// undrawn counts the sites that have no room on a sheet, or do not change.
type undrawn struct {
	moving, still int
	bytes         snapshot.Bytes // of the sites that do not change
}

func sitePanels(r *diff.Result) (panels []panel, left undrawn) {
	_, size, axis := drawn(r.Series.Axis)
	var of []*diff.Row // of the panels
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
		if total == nil || slices.Max(total) == 0 {
			return
		}
		if len(panels) == maxPanels {
			left.moving++
			return
		}
		for _, i := range highest(total, maxPoints/panelColumns) {
			p.x, p.y = append(p.x, axis[i]), append(p.y, float64(total[i]))
		}
		p.warm = axis[min(r.Series.WarmUp(), len(axis)-1)]
		panels, of = append(panels, p), append(of, rows[0])
	}
	process := func() {
		if p, ok := processPanel(r, axis, size); ok {
			panels, of = append(panels, p), append(of, &diff.Row{})
		}
	}
	colours := map[diff.Verdict]color.NRGBA{diff.Leak: leakColours[0], diff.Inconclusive: leakColours[1]}
	leaks := r.Leaks()
	for i := range r.Findings {
		if i == leaks {
			process()
		}
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
		if f.Rate.Unit == r.Series.Axis.Unit && ok && !moreBehind(f) {
			slope := multiplied(f.Rate.Bytes, size)
			p.slope = &slope
		}
		add(f.Rows, p)
	}
	if leaks == len(r.Findings) {
		process()
	}
	var rows []*diff.Row
	for i := range r.Rows {
		if _, ok := drawn[&r.Rows[i]]; !ok {
			rows = append(rows, &r.Rows[i])
		}
	}
	movement := make(map[*diff.Row]snapshot.Bytes, len(rows))
	for _, row := range rows {
		if site := r.Series.Site(row); site != nil {
			movement[row] = slices.Max(site.Bytes) - slices.Min(site.Bytes)
		}
	}
	slices.SortStableFunc(rows, func(a, b *diff.Row) int {
		return cmp.Or(cmp.Compare(movement[b], movement[a]), cmp.Compare(b.After.Bytes, a.After.Bytes))
	})
	moving := len(panels)
	for _, row := range rows {
		if movement[row] > 0 {
			note := "no growth: "
			if row.Growth().Bytes < 0 {
				note = "shrank to "
			}
			add([]*diff.Row{row}, panel{title: shortPlace(row, frame.Headline(row.Frames)), note: note + row.After.Bytes.String(), colour: restLine})
			moving = len(panels)
			continue
		}
		// Sites that stay the same fill the last row; if all do, the largest are drawn.
		if len(panels) < maxPanels && (moving == 0 || len(panels)%panelColumns != 0) {
			add([]*diff.Row{row}, panel{title: shortPlace(row, frame.Headline(row.Frames)), note: "unchanged: " + row.After.Bytes.String(), colour: restLine})
		} else if row.After.Bytes > 0 {
			left.still++
			left.bytes += row.After.Bytes
		}
	}
	names := make([]string, len(panels))
	for i := range panels {
		names[i] = panels[i].title
	}
	for i, from := range callsApart(names, of) {
		panels[i].from = from
	}
	return panels, left
}

// processPanel is growth of the process since warm-up that no stack explains; false if there is none.
func processPanel(r *diff.Result, axis []float64, size float64) (panel, bool) {
	e, warm := r.ProcessGrowth(), r.Series.WarmUp()
	_, rest := r.Series.Unrecorded()
	if e == nil || len(rest) != len(axis) || warm >= len(axis) {
		return panel{}, false
	}
	where := "line unknown"
	if at := e.Line(); at != nil {
		where = spot(*at)
	}
	p := panel{title: "the process, beyond recorded stacks", note: where + ": " + bytesRate(e.Rate), colour: leakColours[1], warm: axis[warm]}
	if e.Rate.Unit == r.Series.Axis.Unit {
		slope := multiplied(e.Rate.Bytes, size)
		p.slope = &slope
	}
	values := make([]snapshot.Bytes, len(rest))
	for i, v := range rest {
		values[i] = snapshot.Bytes(max(v-rest[warm], 0))
	}
	for _, i := range highest(values, maxPoints/panelColumns) {
		p.x, p.y = append(p.x, axis[i]), append(p.y, float64(values[i]))
	}
	return p, true
}

// highest chooses at most limit marks: from each stretch the one with the most.
func highest(values []snapshot.Bytes, limit int) []int {
	meters := make([]snapshot.Meters, len(values))
	for i, v := range values {
		meters[i].Allocated = v
	}
	return thinned(meters, limit)
}

// RankSheet draws small plots, one per rank: its allocated and its reserved bytes. All have the same scale, so that a rank that differs
// stands out. It returns an error if there is nothing to draw.
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
		p.state, p.note = state(rank.Result)
		if rank.Result.Leaks() > 0 {
			leaking++
			f := &rank.Result.Findings[0]
			p.colour = leakColours[0]
			p.note += ": " + bytesRate(f.Rate) + " at " + shortPlace(f.Rows[0], f.Headline)
		}
		panels = append(panels, p)
	}
	if len(panels) == 0 {
		return fmt.Errorf("nothing to plot: no rank has a snapshot with a device")
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
		slices.SortStableFunc(panels, func(a, b panel) int { return cmp.Compare(a.urgency(), b.urgency()) })
		title += fmt.Sprintf(" (%d are drawn, those that leak first)", maxPanels)
		panels = panels[:maxPanels]
	}
	return writeSheet(w, format, title, "allocated bytes, and reserved ones as a blue line; all plots on one scale", panels, o, top)
}

// writeSheet lays panels out; their top is top if given, else each panel's own.
func writeSheet(w io.Writer, format PlotFormat, title, about string, panels []panel, o PlotOptions, top ...float64) error {
	columns := min(panelColumns, len(panels))
	rows := (len(panels) + columns - 1) / columns
	if o.Height == 0 {
		o.Height = 170 + 290*rows
	}
	width, height := o.size()
	return picture(w, format, width, height, func(page draw.Canvas) {
		y := heading(page, title, about)
		tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: 14, PadY: 10, PadLeft: pageMargin, PadRight: pageMargin, PadBottom: pageMargin, PadTop: page.Max.Y - y}
		width := tiles.At(page, 0, 0).Size().X
		names := make(map[string]int)
		for i := range panels {
			panels[i].fit(width)
			names[panels[i].title+panels[i].from]++
			if n := names[panels[i].title+panels[i].from]; n > 1 {
				panels[i].title = fmt.Sprintf("%d. %s", n, panels[i].title) // the difference had no room
				panels[i].fit(width)
			}
			high := slices.Max(append(slices.Clone(top), 0))
			if high == 0 {
				high = slices.Max(panels[i].y)
			}
			panels[i].draw(tiles.At(page, i%columns, i/columns), max(high*1.08, 1))
		}
	})
}

// The styles of a panel's title, and of the call that distinguishes it.
var panelTitle, panelFrom = style(smallSize, true, inkColour), style(smallSize, false, quietColour)

// fit cuts the panel's title to a width. The end of from is kept, since it distinguishes panels of one place: the outermost call, or
// the line of an operation.
func (p *panel) fit(width vg.Length) {
	p.title = cutTo(panelTitle, p.title, width)
	room := width - panelTitle.Width(p.title+" ")
	if last := strings.LastIndexAny(p.from, "←→"); last > 0 && panelFrom.Width(p.from) > room {
		p.from = "… " + p.from[last:]
	}
	runes := []rune(p.from)
	for n := 1; n < len(runes) && panelFrom.Width(p.from) > room; n++ {
		p.from = "…" + string(runes[n:])
	}
}

func (p *panel) draw(area draw.Canvas, top float64) {
	note := style(smallSize-1, false, darker(p.colour))
	y := area.Max.Y - smallSize
	area.FillText(panelTitle, vg.Point{X: area.Min.X, Y: y}, p.title)
	area.FillText(panelFrom, vg.Point{X: area.Min.X + panelTitle.Width(p.title+" "), Y: y}, p.from)
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
		drawSlope(canvas, *p.slope, p.x[from:], p.y[from:], toX, toY)
	}
	if p.reserved != nil {
		canvas.StrokeLines(draw.LineStyle{Color: reserveLine, Width: 1}, line(p.reserved))
	}
}

// fewTicks labels only every second tick if there are many.
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

// cutTo cuts text at the end so that it fits.
func cutTo(style draw.TextStyle, text string, room vg.Length) string {
	runes := []rune(text)
	for n := len(runes); n > 1 && style.Width(text) > room; n-- {
		text = string(runes[:n-1]) + "…"
	}
	return text
}
