package series

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// MostBirths is the most births of a site that are repeated.
const MostBirths = 10_000

// Past is a site's history over the compared marks, to be repeated as a forecast.
type Past struct {
	Points
	Warm int // the first mark of the part that is repeated
}

// Follows reports whether the site grew with the batch size or the sequence length. As long as these grow, nothing is
// decided.
func (p *Past) Follows(unit Unit) bool {
	return len(p.X) > 2 && Without(nil).History(p.Points, unit).Covariate != ""
}

// JumpsLast reports whether the last interval made most of the growth; always false with steps.
func (p *Past) JumpsLast(unit Unit) bool {
	return unit != Step && len(p.X) > 2 && Without(nil).History(p.Points, unit).JumpsLast()
}

// Apart is the distance between the last two marks.
func (p *Past) Apart() float64 { return p.X[len(p.X)-1] - p.X[len(p.X)-2] }

// period is the length of the part that is repeated.
func (p *Past) period() float64 { return p.X[len(p.X)-1] - p.X[p.Warm] }

// again is the value of y, a column of the points, at an x after the last mark.
func (p *Past) again(y []float64, x float64) float64 {
	first, last := y[p.Warm], y[len(y)-1]
	times := math.Floor((x - p.X[p.Warm]) / p.period())
	return times*(last-first) + trend.At(p.X[p.Warm:], y[p.Warm:], x-times*p.period())
}

// GoneOn is the past, continued for so many marks.
func (p *Past) GoneOn(marks int) Points {
	n := len(p.X)
	at := make([]float64, marks)
	for i := range at {
		at[i] = p.X[n-1] + float64(i+1)*p.Apart()
	}
	column := func(y []float64, of func(float64) float64) []float64 {
		out := slices.Clone(y)
		for _, x := range at {
			out = append(out, of(p.again(y, x)))
		}
		return out
	}
	as := func(v float64) float64 { return v }
	instants := slices.Clone(p.Instants)
	for range at {
		m := len(instants)
		instants = append(instants, 2*instants[m-1]-instants[m-2])
	}
	return Points{
		X: slices.Concat(p.X, at), Blocks: column(p.Blocks, math.Round), Bytes: column(p.Bytes, math.Round), Sizes: column(p.Sizes, math.Round),
		elements: column(p.elements, as), length: column(p.length, as), Instants: instants,
	}
}

// BornOn repeats the births of the past, up to the last point of to.
func (p *Past) BornOn(b Births, to Points, unit Unit) Births {
	repeat := func(at, of []int64, first, last, end float64) (out, weights []int64) {
		out, weights = slices.Clone(at), slices.Clone(of)
		// Clocks may be set back: the last two marks may lie further apart than the first and the last.
		for times := 1; last > first && times < len(to.X) && first+float64(times)*(last-first) < end; times++ {
			for i, v := range at {
				later := float64(v) + float64(times)*(last-first)
				if float64(v) < first || later >= end {
					continue
				}
				if out = append(out, int64(later)); of != nil {
					weights = append(weights, of[i])
				}
			}
		}
		return out, weights
	}
	n, m := len(p.X), len(to.X)
	steps, weights := b.Steps, b.Weights
	if unit == Step {
		steps, weights = repeat(b.Steps, b.Weights, p.X[p.Warm], p.X[n-1], to.X[m-1])
	}
	times, _ := repeat(b.Times, nil, float64(p.Instants[p.Warm]), float64(p.Instants[n-1]), float64(to.Instants[m-1]))
	return Births{Steps: steps, Times: times, Weights: weights, Unknown: b.Unknown, Latest: b.Latest}
}

// PastOf returns a site's past; nil if the site has fewer than two marks or too many births.
func (s *Series) PastOf(row *Row) *Past {
	site := s.Site(row)
	if site == nil || len(row.Births.Steps)+len(row.Births.Times) > MostBirths {
		return nil
	}
	p := &Past{Points: s.pointsOf(site)}
	n := len(p.X)
	if n < 2 {
		return nil
	}
	if n > 2 && len(row.Births.Steps) == 0 { // without births, warm-up is left out; births show what was allocated once
		p.Warm = WarmUp(n)
	}
	return p
}
