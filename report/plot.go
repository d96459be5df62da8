package report

import (
	"cmp"
	"errors"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// PlotOptions configure what a plot shows and its size.
type PlotOptions struct {
	Title         string // "": the verdict, from Headline
	Device        string // "cuda:0"; "": the device of the first finding, else the first device
	Width, Height int    // of a PNG in pixels; an SVG or PDF has half as many points. 0: 1600 × 900
	Stack         Stacking
}

// Stacking says how the allocated bytes of a plot are divided.
type Stacking string

// The stackings.
const (
	StackLeaks  Stacking = "leaks"  // leaks and possible leaks, and the rest; the roles of other processes if those grow; also ""
	StackSites  Stacking = "sites"  // the largest sites
	StackOwners Stacking = "owners" // owners of a reference at the end: user, tape, grad, optim …
	StackRoles  Stacking = "roles"  // the command's processes, by what they do
)

// size is the size of the page in points.
func (o PlotOptions) size() (width, height vg.Length) {
	width, height = 800, 450
	if o.Width > 0 {
		width = vg.Length(o.Width) / 2
	}
	if o.Height > 0 {
		height = vg.Length(o.Height) / 2
	}
	return width, height
}

// Plot draws a run's memory over its steps: the allocated bytes, with each leaking site stacked in its own colour and named at its end,
// below the reserved bytes, the driver's own figure and, if it is near, the device's limit. Possible leaks are drawn like leaks, and
// labelled as inconclusive. A leak's slope has its 95 % interval, and is extended to where memory runs out if that is near. Warm-up is
// shaded, and epochs and other phases are marked. If other processes grow and the recorded one does not, it draws all processes by role
// over time. It returns an error if there is nothing to draw, or if the device or the format is unknown.
func Plot(w io.Writer, format PlotFormat, r *diff.Result, o PlotOptions) error {
	if err := format.known(); err != nil {
		return err
	}
	var c *chart
	var err error
	switch o.Stack {
	case StackRoles:
		if c = newTreeChart(r, o, maxPoints); c == nil {
			err = errors.New("nothing to plot: the run has no second process that is large enough")
		}
	case StackLeaks, "":
		if o.Device == "" && aboutOthers(r) {
			c = newTreeChart(r, o, maxPoints)
		}
	}
	if c == nil && err == nil {
		c, err = newChart(r, o, maxPoints)
	}
	if err != nil {
		return err
	}
	width, height := o.size()
	return picture(w, format, width, height, c.draw)
}

// Lengths in points.
const (
	pageMargin  = 16
	titleSize   = 13
	smallSize   = 9
	labelGap    = 4
	labelLeader = 14
)

func style(size vg.Length, bold bool, c color.Color) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return draw.TextStyle{Color: c, Font: f, Handler: text.Plain{Fonts: font.DefaultCache}}
}

// draw lays the page out: title, plot, and names at the right of the plot.
func (c *chart) draw(page draw.Canvas) {
	page.FillPolygon(color.White, []vg.Point{page.Min, {X: page.Max.X, Y: page.Min.Y}, page.Max, {X: page.Min.X, Y: page.Max.Y}})
	labels := c.labels()
	right := vg.Length(0)
	for _, l := range labels {
		right = max(right, l.width())
	}
	right += labelLeader + labelGap

	about := c.subtitle
	if slices.ContainsFunc(c.bands, func(b band) bool { return b.slope != nil && b.slope.Low != b.slope.High && doubt(*b.slope) == "" }) {
		about += " · dashed and dotted: a slope and its 95 % interval"
	}
	y := heading(page, c.title, about)

	p := plot.New()
	p.BackgroundColor = nil
	p.X.Min, p.X.Max = c.x[0], max(c.x[len(c.x)-1], c.end)
	if p.X.Min == p.X.Max {
		apart := max(1, p.X.Min*1e-9) // one step is lost in the rounding of 2^60
		p.X.Min, p.X.Max = p.X.Min-apart, p.X.Max+apart
	}
	p.Y.Min, p.Y.Max = 0, c.top
	p.X.Tick.Marker, p.Y.Tick.Marker = stepTicks{}, byteTicks{}
	p.X.Label.Text = c.axis
	p.X.Label.TextStyle = style(smallSize, false, quietColour)
	p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
	p.X.Label.Padding = 2
	plain(p)
	p.Add(c)
	area := draw.Crop(page, pageMargin, -pageMargin-right, pageMargin-4, y-page.Max.Y)
	p.Draw(area)
	data := p.DataCanvas(area)
	toX, toY := p.Transforms(&data)
	drawLabels(page, data, labels, toX(c.x[len(c.x)-1]), toY)
}

// heading writes a page's title and subtitle, and returns the height below them.
func heading(page draw.Canvas, text, small string) vg.Length {
	y := page.Max.Y - pageMargin
	title := style(titleSize, true, inkColour)
	for _, line := range foldedTo(title, text, page.Size().X-2*pageMargin) {
		y -= titleSize
		page.FillText(title, vg.Point{X: page.Min.X + pageMargin, Y: y}, line)
		y -= 4
	}
	subtitle := style(smallSize, false, quietColour)
	if small != "" {
		for _, line := range foldedTo(subtitle, small, page.Size().X-2*pageMargin) {
			y -= smallSize + 2
			page.FillText(subtitle, vg.Point{X: page.Min.X + pageMargin, Y: y}, line)
		}
	}
	return y - 12
}

// plain styles a plot's axes.
func plain(p *plot.Plot) {
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		xAlign, yAlign := axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Tick.Label = style(smallSize, false, quietColour)
		axis.Tick.Label.XAlign, axis.Tick.Label.YAlign = xAlign, yAlign
		axis.LineStyle = draw.LineStyle{Color: axisColour, Width: 0.75}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = 3
		axis.Padding = 0
	}
	p.Y.Width, p.Y.Tick.Width = 0, 0
}

// Plot draws the data; it implements plot.Plotter.
func (c *chart) Plot(canvas draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&canvas)
	line := func(y []float64) []vg.Point {
		points := make([]vg.Point, len(y))
		for i := range y {
			points[i] = vg.Point{X: toX(c.x[i]), Y: toY(y[i])}
		}
		return points
	}
	c.background(canvas, toX)
	floor := make([]float64, len(c.x))
	edges := make([][]vg.Point, len(c.bands))
	for i, b := range c.bands {
		under := line(floor)
		slices.Reverse(under)
		for j := range floor {
			floor[j] += b.y[j]
		}
		edges[i] = line(floor)
		fill := b.colour
		if b.colour != restColour {
			fill.A = 80
			if b.strong {
				fill.A = 150
			}
		}
		if len(floor) > 1 {
			canvas.FillPolygon(fill, append(slices.Clone(edges[i]), under...))
		}
	}
	// Grid lines are drawn above the fills, so that a height can be read in a band, too, but not through the names at the top.
	highest := canvas.Max.Y
	if c.warm > c.x[0] || len(c.epochs) > 0 {
		highest -= smallSize
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value > 0 && toY(t.Value) < highest {
			canvas.StrokeLine2(draw.LineStyle{Color: gridColour, Width: 0.75}, canvas.Min.X, toY(t.Value), canvas.Max.X, toY(t.Value))
		}
	}
	for i, edge := range edges {
		stroke := c.bands[i].colour
		if stroke == restColour {
			stroke = restLine
		}
		canvas.StrokeLines(draw.LineStyle{Color: stroke, Width: 1.5}, edge)
		if len(edge) <= 30 {
			for _, point := range edge {
				canvas.DrawGlyph(draw.GlyphStyle{Color: stroke, Radius: 2, Shape: draw.CircleGlyph{}}, point)
			}
		}
	}
	c.meterLines(canvas, line, toY)
	c.slopes(canvas, toX, toY)
	c.forecast(canvas, toX, toY)
	c.asides(canvas, toX)
}

// meterLines draws what is measured separately from the stack.
func (c *chart) meterLines(canvas draw.Canvas, line func([]float64) []vg.Point, toY func(float64) vg.Length) {
	// Straight from mark to mark, like the bands: the step between two marks at which a segment was added is unknown.
	canvas.StrokeLines(draw.LineStyle{Color: reserveLine, Width: 1.5}, line(c.reserved))
	var known []vg.Point
	for i, point := range line(c.driver) {
		if c.driver[i] >= 0 {
			known = append(known, point)
		}
	}
	canvas.StrokeLines(draw.LineStyle{Color: driverLine, Width: 1, Dashes: []vg.Length{4, 3}}, known)
	if c.limit > 0 {
		canvas.StrokeLine2(draw.LineStyle{Color: limitLine, Width: 1.25, Dashes: []vg.Length{8, 3, 2, 3}}, canvas.Min.X, toY(c.limit), canvas.Max.X, toY(c.limit))
	}
}

// endLabel names a curve at its right end.
type endLabel struct {
	lines  []string
	colour color.Color
	bold   bool
	at     float64   // bytes, of what it names
	y      vg.Length // of its middle, once placed
}

// maxLabel is how many characters of a word are shown beside the plot, and labelWidth the width of a line there, in points; the title
// has them in full.
const maxLabel, labelWidth = 34, 150

func (c *chart) labels() []endLabel {
	var out []endLabel
	end := len(c.x) - 1
	floor := 0.0
	for _, b := range c.bands {
		ink := color.Color(darker(restLine))
		if b.colour != restColour {
			ink = darker(b.colour)
		}
		lines := foldedTo(style(smallSize, b.strong, ink), b.name, labelWidth)
		if b.from != "" {
			lines = append(lines, b.from)
		}
		lines = append(lines, b.notes...)
		for i, l := range lines {
			if n := utf8.RuneCountInString(l); n > maxLabel {
				l = "…" + string([]rune(l)[n-maxLabel+1:])
			}
			lines[i] = l
		}
		out = append(out, endLabel{lines: lines, colour: ink, bold: b.strong, at: floor + b.y[end]/2})
		floor += b.y[end]
	}
	size := snapshot.FormatBytes
	if c.reserved != nil {
		out = append(out, endLabel{lines: []string{"reserved " + size(c.reserved[end])}, colour: reserveLine, at: c.reserved[end]})
	}
	if c.driver != nil && c.driver[end] >= 0 {
		out = append(out, endLabel{lines: []string{c.outermost + " " + size(c.driver[end])}, colour: darker(driverLine), at: c.driver[end]})
	}
	if c.limit > 0 {
		out = append(out, endLabel{lines: []string{"limit " + size(c.limit)}, colour: limitLine, at: c.limit})
	}
	return out
}

// darker darkens a fill's colour until it is readable as text on white, with a contrast of at least 4.5 to 1 as WCAG defines it.
func darker(c color.NRGBA) color.NRGBA {
	dark := c
	for share := 15; share > 0; share-- { // of 20
		part := func(v uint8) uint8 { return uint8(int(v) * share / 20) }
		dark = color.NRGBA{R: part(c.R), G: part(c.G), B: part(c.B), A: 255}
		if 1.05/(luminance(dark)+0.05) >= 4.5 {
			break
		}
	}
	return dark
}

// luminance is the relative luminance of WCAG, from 0 to 1.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		if s := float64(v) / 255; s > 0.03928 {
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

func (l endLabel) style(line int) draw.TextStyle {
	return style(smallSize, l.bold && line == 0, l.colour)
}

func (l endLabel) height() vg.Length { return vg.Length(len(l.lines)) * (smallSize + 2) }

func (l endLabel) width() vg.Length {
	w := vg.Length(0)
	for i, text := range l.lines {
		w = max(w, l.style(i).Width(text))
	}
	return w
}

// drawLabels puts each label beside the end of its curve, apart from its neighbours, with a line to the curve.
func drawLabels(page, data draw.Canvas, labels []endLabel, end vg.Length, toY func(float64) vg.Length) {
	slices.SortStableFunc(labels, func(a, b endLabel) int { return cmp.Compare(a.at, b.at) })
	low := data.Min.Y - smallSize
	for i := range labels {
		l := &labels[i]
		l.y = max(toY(l.at), low+l.height()/2)
		low = l.y + l.height()/2 + 2
	}
	// Labels pushed above the top come down again, and push those below.
	high := data.Max.Y + smallSize
	for i := len(labels) - 1; i >= 0; i-- {
		l := &labels[i]
		l.y = min(l.y, high-l.height()/2)
		high = l.y - l.height()/2 - 2
	}
	for _, l := range labels {
		x := data.Max.X + labelGap
		leader := draw.LineStyle{Color: l.colour, Width: 0.75}
		if end < data.Max.X {
			leader = draw.LineStyle{Color: gridColour, Width: 0.75} // a forecast lies between the curve and the label
		}
		page.StrokeLines(leader, []vg.Point{{X: end + 1, Y: toY(l.at)}, {X: x + labelLeader - 5, Y: l.y}})
		y := l.y + l.height()/2
		for i, text := range l.lines {
			y -= smallSize + 2
			page.FillText(l.style(i), vg.Point{X: x + labelLeader - 2, Y: y + 3}, text)
		}
	}
}

// foldedTo breaks s at spaces so that each line fits the width; a word that is wider gets its own line.
func foldedTo(style draw.TextStyle, s string, width vg.Length) []string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(s, " ") {
		switch longer := line + " " + word; {
		case line == "":
			line = word
		case style.Width(longer) > width:
			lines = append(lines, line)
			line = word
		default:
			line = longer
		}
	}
	return append(lines, line)
}
