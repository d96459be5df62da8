package corpus

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Picture draws the calibration of runs, a row for each view: of each thing that memdiag says the
// share that holds, with its 95 % interval. The format is "svg" or "png".
func Picture(w io.Writer, format string, runs []*Run) error {
	var names []string
	var rows []calibration
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		names, rows = append([]string{of[0].View.Name}, names...), append([]calibration{scores(of)[0].Calibration}, rows...)
	}
	p := plot.New()
	p.Title.Text = "Of what memdiag says, the share that holds (with 95 % intervals)"
	p.X.Min, p.X.Max = 0, 1
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: 0.25, Label: "25 %"}, {Value: 0.5, Label: "50 %"}, {Value: 0.75, Label: "75 %"}, {Value: 0.95, Label: "95 %"}}
	p.NominalY(names...)
	p.Legend.Top, p.Legend.Left = true, true
	meant, err := plotter.NewLine(plotter.XYs{{X: 0.95, Y: -0.5}, {X: 0.95, Y: float64(len(names)) - 0.5}})
	if err != nil {
		return err
	}
	meant.Color, meant.Dashes = color.Gray{Y: 140}, []vg.Length{4, 3}
	p.Add(meant)
	for i, kind := range []struct {
		name   string
		colour color.NRGBA
		glyph  draw.GlyphDrawer
		of     func(*calibration) decided
	}{
		{"a strong leak is one", color.NRGBA{R: 0, G: 90, B: 181, A: 255}, draw.CircleGlyph{}, func(c *calibration) decided { return c.Leaks }},
		{"decided when said", color.NRGBA{R: 220, G: 95, B: 0, A: 255}, draw.TriangleGlyph{}, func(c *calibration) decided { return c.Promises }},
		{"the rate lies within its interval", color.NRGBA{R: 0, G: 130, B: 90, A: 255}, draw.BoxGlyph{}, func(c *calibration) decided { return c.Intervals }},
	} {
		var points shares
		for row := range rows {
			if d := kind.of(&rows[row]); d.Made > 0 {
				points.add(d, float64(row)+0.2*float64(1-i))
			}
		}
		if points.XYs == nil {
			continue
		}
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: kind.colour, Shape: kind.glyph, Radius: 2.5}
		bars, err := plotter.NewXErrorBars(points)
		if err != nil {
			return err
		}
		bars.Color, bars.CapWidth = kind.colour, 0
		p.Add(bars, scatter)
		p.Legend.Add(kind.name, scatter)
	}
	to, err := p.WriterTo(7*vg.Inch, vg.Length(1.2+0.32*float64(len(names)))*vg.Inch, format)
	if err != nil {
		return fmt.Errorf("a picture is a .svg or .png: %w", err)
	}
	_, err = to.WriteTo(w)
	return err
}

// shares are points with their intervals, as plotter asks for them.
type shares struct {
	plotter.XYs
	plotter.XErrors
}

func (s *shares) add(d decided, y float64) {
	low, high := wilson(d)
	x := float64(d.Kept) / float64(d.Made)
	s.XYs = append(s.XYs, plotter.XY{X: x, Y: y})
	s.XErrors = append(s.XErrors, struct{ Low, High float64 }{low - x, high - x})
}
