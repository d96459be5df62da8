package report

import (
	"image/color"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// maxMoments is how many named moments fit on an axis.
const maxMoments = 12

// farAhead: a forecast is drawn if it lies at most this many lengths of the run ahead.
const farAhead = 1.5

// context finds what is drawn around the curves: warm-up, epochs, marks of other phases, and the forecast.
func (c *chart) context(r *diff.Result, by Stacking, device int, axis []float64) {
	first, last := c.x[0], c.x[len(c.x)-1]
	c.warm = first
	if n := r.Series.WarmUp(); n < len(axis)-1 {
		c.warm = axis[n]
	}
	marks := r.Series.Marks
	for i := 1; i < len(marks); i++ {
		if marks[i].Epoch != marks[i-1].Epoch && marks[i].Epoch != snapshot.NoStep {
			c.epochs = append(c.epochs, moment{axis[i-1], "epoch " + grouped(marks[i].Epoch)})
		}
	}
	if len(c.epochs) > maxMoments {
		c.epochs = nil // so many lines would show nothing
	}
	unit := r.Series.Axis.Unit
	for _, m := range r.Series.Aside {
		if x := float64(m.Step); unit == diff.Step && m.Step != snapshot.NoStep && x >= first && x <= last && m.Phase != "" {
			c.aside = append(c.aside, moment{x, brief(m.Phase)})
		}
	}
	if by == StackSites || by == StackOwners {
		return // these stackings show no forecast
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		at := f.RunsOut
		if at == nil || at.Beyond || deviceName(f.Rows[0].Device) != deviceName(r.Series.Devices[device]) {
			continue
		}
		out := &runsOut{float64(at.Step), float64(at.Low), float64(at.High), atText(at, f.Rate.Unit), at.Limit}
		if at.Step == snapshot.NoStep {
			behind := func(d time.Duration) float64 { return last + d.Seconds()/c.size }
			out.x, out.low, out.high = behind(at.After), behind(at.AfterLow), behind(at.AfterHigh)
		}
		if out.x < last {
			return
		}
		c.runsOut = out
		if c.limit > 0 && c.reserved != nil && out.x <= last+farAhead*(last-first) {
			c.end = min(out.high, last+farAhead*(last-first))
		}
		return
	}
}

// background shades warm-up, and marks epochs.
func (c *chart) background(canvas draw.Canvas, toX func(float64) vg.Length) {
	small := style(smallSize-1, false, quietColour)
	small.YAlign = draw.YTop
	if end := toX(c.warm); c.warm > c.x[0] {
		canvas.FillPolygon(color.NRGBA{A: 12}, []vg.Point{canvas.Min, {X: end, Y: canvas.Min.Y}, {X: end, Y: canvas.Max.Y}, {X: canvas.Min.X, Y: canvas.Max.Y}})
		if small.Width("warm-up") < end-canvas.Min.X {
			canvas.FillText(small, vg.Point{X: canvas.Min.X + 2, Y: canvas.Max.Y - 1}, "warm-up")
		}
	}
	free := canvas.Min.X
	for _, m := range c.epochs {
		x := toX(m.x)
		canvas.StrokeLine2(draw.LineStyle{Color: gridColour, Width: 0.75, Dashes: []vg.Length{2, 2}}, x, canvas.Min.Y, x, canvas.Max.Y)
		if x > free && x+small.Width(m.name) < canvas.Max.X {
			canvas.FillText(small, vg.Point{X: x + 2, Y: canvas.Max.Y - 1}, m.name)
			free = x + small.Width(m.name) + 4
		}
	}
}

// asides marks at the foot where the run was in another phase.
func (c *chart) asides(canvas draw.Canvas, toX func(float64) vg.Length) {
	small := style(smallSize-1, false, inkColour)
	named := make(map[string]struct{})
	for _, m := range c.aside {
		x := toX(m.x)
		canvas.StrokeLine2(draw.LineStyle{Color: inkColour, Width: 1}, x, canvas.Min.Y, x, canvas.Min.Y+6)
		if _, ok := named[m.name]; !ok && len(named) < maxMoments {
			named[m.name] = struct{}{}
			canvas.FillText(small, vg.Point{X: x + 1, Y: canvas.Min.Y + 8}, m.name)
		}
	}
}

// slopes draws each fitted slope, with its interval, at the height of its band. It draws none if the bands below move too much for a
// line to look straight.
func (c *chart) slopes(canvas draw.Canvas, toX, toY func(float64) vg.Length) {
	floor := make([]float64, len(c.x))
	for _, b := range c.bands {
		under := slices.Clone(floor)
		for i := range floor {
			floor[i] += b.y[i]
		}
		from := slices.IndexFunc(c.x, func(x float64) bool { return x >= c.warm })
		if b.slope == nil || from < 0 || len(c.x)-from < 3 || moves(under[from:]) > moves(b.y[from:])/4 {
			continue
		}
		drawSlope(canvas, *b.slope, c.x[from:], floor[from:], toX, toY)
	}
}

// moves is the difference between the highest and the lowest value.
func moves(values []float64) float64 { return slices.Max(values) - slices.Min(values) }

// drawSlope draws a line with its interval through the medians of x and y, as a Theil–Sen line goes. A slope that may be zero is not
// drawn.
func drawSlope(canvas draw.Canvas, slope trend.Slope, x, y []float64, toX, toY func(float64) vg.Length) {
	if doubt(slope) != "" {
		return
	}
	middle, level := median(x), median(y)
	line := func(rate float64) []vg.Point {
		at := func(x float64) vg.Point { return vg.Point{X: toX(x), Y: toY(level + rate*(x-middle))} }
		return []vg.Point{at(x[0]), at(x[len(x)-1])}
	}
	// Hairlines, because a filled interval would cover half of the picture if there are few marks.
	if slope.Low != slope.High {
		canvas.StrokeLines(draw.LineStyle{Color: inkColour, Width: 0.5, Dashes: []vg.Length{0.75, 2}}, canvas.ClipLinesXY(line(slope.Low), line(slope.High))...)
	}
	canvas.StrokeLines(draw.LineStyle{Color: inkColour, Width: 0.75, Dashes: []vg.Length{3, 2}}, canvas.ClipLinesXY(line(slope.Value))...)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// forecast draws reserved memory onward to the limit, with its interval.
func (c *chart) forecast(canvas draw.Canvas, toX, toY func(float64) vg.Length) {
	at := c.runsOut
	if at == nil || c.end == 0 {
		return
	}
	x := func(at float64) vg.Length { return toX(min(at, c.end)) }
	limit := toY(c.limit)
	from := vg.Point{X: toX(c.x[len(c.x)-1]), Y: toY(c.from[0])}
	fill := limitLine
	fill.A = 30
	canvas.FillPolygon(fill, []vg.Point{from, {X: x(at.low), Y: limit}, {X: x(at.high), Y: limit}, {X: from.X, Y: toY(c.from[1])}})
	canvas.StrokeLine2(draw.LineStyle{Color: limitLine, Width: 1.25, Dashes: []vg.Length{2, 2}}, from.X, from.Y, x(at.x), limit)
	label := style(smallSize, true, limitLine)
	text := "runs out: " + at.text
	canvas.FillText(label, vg.Point{X: max(x(at.x)-label.Width(text), canvas.Min.X), Y: limit + 4}, text)
}
