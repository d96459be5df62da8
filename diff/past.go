package diff

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// mostBirths bounds those of a site that are repeated.
const mostBirths = 10_000

// past is what a site did over the marks that are compared.
type past struct {
	points
	warm int // the mark from which on it is done again
}

// follows reports whether the site grew with the batch or the sequence: as long as that grows, nothing
// is decided.
func (p *past) follows(unit Unit) bool {
	return len(p.x) > 2 && Without(nil).judgedFrom(p.points, unit).covariate != ""
}

// jumpsLast reports whether the last interval by the clock made most of the growth.
func (p *past) jumpsLast(unit Unit) bool {
	return unit != Step && len(p.x) > 2 && Without(nil).judgedFrom(p.points, unit).jumpsLast()
}

// apart is how far the last two marks lie from each other.
func (p *past) apart() float64 { return p.x[len(p.x)-1] - p.x[len(p.x)-2] }

// period is how long that lasted which is done again.
func (p *past) period() float64 { return p.x[len(p.x)-1] - p.x[p.warm] }

// again is what y, a column of the points, is at a place behind the last mark.
func (p *past) again(y []float64, x float64) float64 {
	first, last := y[p.warm], y[len(y)-1]
	times := math.Floor((x - p.x[p.warm]) / p.period())
	return times*(last-first) + trend.At(p.x[p.warm:], y[p.warm:], x-times*p.period())
}

// goneOn is the past with so many marks more.
func (p *past) goneOn(marks int) points {
	n := len(p.x)
	at := make([]float64, marks)
	for i := range at {
		at[i] = p.x[n-1] + float64(i+1)*p.apart()
	}
	column := func(y []float64, of func(float64) float64) []float64 {
		out := slices.Clone(y)
		for _, x := range at {
			out = append(out, of(p.again(y, x)))
		}
		return out
	}
	as := func(v float64) float64 { return v }
	instants := slices.Clone(p.instants)
	for range at {
		m := len(instants)
		instants = append(instants, 2*instants[m-1]-instants[m-2])
	}
	return points{
		x: slices.Concat(p.x, at), blocks: column(p.blocks, math.Round), bytes: column(p.bytes, math.Round), sizes: column(p.sizes, math.Round),
		elements: column(p.elements, as), length: column(p.length, as), instants: instants,
	}
}

// bornOn repeats the births of the past, up to the last of the points.
func (p *past) bornOn(b births, to points, unit Unit) births {
	repeat := func(at, of []int64, first, last, end float64) (out, weights []int64) {
		out, weights = slices.Clone(at), slices.Clone(of)
		// Clocks are put back: the last two may lie further apart than first and last.
		for times := 1; last > first && times < len(to.x) && first+float64(times)*(last-first) < end; times++ {
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
	n, m := len(p.x), len(to.x)
	steps, weights := b.steps, b.weights
	if unit == Step {
		steps, weights = repeat(b.steps, b.weights, p.x[p.warm], p.x[n-1], to.x[m-1])
	}
	times, _ := repeat(b.times, nil, float64(p.instants[p.warm]), float64(p.instants[n-1]), float64(to.instants[m-1]))
	return births{steps: steps, times: times, weights: weights, unknown: b.unknown, latest: b.latest}
}

// pastOf is nil for a site of fewer than two marks, and for one of too many births.
func (s *Series) pastOf(row *Row) *past {
	site := s.Site(row)
	if site == nil || len(row.births.steps)+len(row.births.times) > mostBirths {
		return nil
	}
	p := &past{points: s.pointsOf(site)}
	n := len(p.x)
	if n < 2 {
		return nil
	}
	if n > 2 && len(row.births.steps) == 0 { // births tell what was made once
		p.warm = warmUp(n)
	}
	return p
}
