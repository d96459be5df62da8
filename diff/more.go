package diff

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// More is after how much more an inconclusive finding may be decided, if it goes on as it
// did; zero where nothing tells.
type More struct {
	Steps int64 // or seconds, as the axis counts; 0 where only the order is known
	// Snapshots are how many more of them, as far apart as the last two, it takes; 0 where
	// counters tell each step, or a declared bound is what decides.
	Snapshots int
}

// Farthest is for how many times the length of a run its rates are thought on, to tell when
// a bound or a limit is reached.
const Farthest = 100

// Bounds on the trials, so that they take no longer than the judgement itself.
const (
	mostMore   = 2      // more marks, for each that a run has, and for each that a test needs
	mostTried  = 1000   // findings, those that grew most
	mostBirths = 10_000 // of a site
	// margin is the part of it that is added to what a trial gives, since no past is repeated to
	// the letter: of the promises of the corpus 78 % hold with a quarter, and 81 % with a half.
	margin = 2
)

// more tells what decides an inconclusive cluster. It is found by trial: what its first site
// did since warm-up is done again, and again, at marks as far apart as the last two, and
// judged among as many sites as change in this run.
func (r *Result) more(c *cluster) More {
	length := r.Series.axis.Length()
	if c.j.verdict != Inconclusive || !r.Comparable || c.against != nil {
		return More{}
	}
	if c.toBound > 0 {
		if c.j.rate.Unit == Place || c.j.rate.Blocks.Value <= 0 {
			return More{}
		}
		if more := math.Ceil(c.toBound / c.j.rate.Blocks.Value); more <= Farthest*length {
			return More{Steps: int64(more)}
		}
		return More{}
	}
	p := r.pastOf(c.rows[0])
	if r.tried++; p == nil || r.tried > mostTried {
		return More{}
	}
	decides := func(marks int) bool { return r.wouldDecide(c, p, marks) }
	calm := *r
	calm.tides = nil
	// What leaves it undecided may not be in what is done again, or go on with it: other sites that
	// come and go, which do so further in a longer run, and a batch that grows. And growth by the clock that
	// the last interval made is one event, of which nothing tells whether it comes again.
	if decides(0) || calm.wouldDecide(c, p, 0) || p.follows(r.Series.axis.Unit) || p.jumpsLast(r.Series.axis.Unit) {
		return More{}
	}
	marks := fewest(len(p.x), decides)
	if marks > 0 && r.Series.axis.Unit == Second {
		// Programs by the clock repeat their past less: of 488 promises of 76 recordings 69 % held, and
		// of those so much later 81 %.
		return r.moreMarks(2*(marks+1), p.apart())
	}
	return r.moreMarks(marks+marks/margin, p.apart())
}

// fewest is with how many marks more than there are enough holds; 0 where nothing tells.
func fewest(marks int, enough func(more int) bool) int {
	k := 1
	for ; !enough(k); k *= 2 {
		if k >= mostMore*(marks+testable) {
			return 0
		}
	}
	low, high := k/2, k // not enough, and enough
	for high-low > 1 {
		if half := (low + high) / 2; enough(half) {
			high = half
		} else {
			low = half
		}
	}
	return high
}

// moreMarks is so many marks more, so far apart.
func (r *Result) moreMarks(marks int, apart float64) More {
	m := More{Snapshots: marks}
	if r.Series.axis.Unit != Place {
		m.Steps = int64(math.Ceil(float64(marks) * apart))
	}
	if r.Series.seen == nil {
		m.Snapshots = 0
	}
	return m
}

// past is what a site did over the marks that are compared.
type past struct {
	points
	warm int // the mark from which on it is done again
}

// pastOf is nil for a site of fewer than two marks, and for one of too many births.
func (r *Result) pastOf(row *Row) *past {
	site := r.Series.Site(row)
	if site == nil || len(row.births.steps)+len(row.births.times) > mostBirths {
		return nil
	}
	p := &past{points: r.Series.pointsOf(site)}
	n := len(p.x)
	if n < 2 {
		return nil
	}
	if n > 2 && len(row.births.steps) == 0 { // births tell what was made once
		p.warm = warmUp(n)
	}
	return p
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

// wouldDecide judges a cluster's first site over its past and so many marks more.
func (r *Result) wouldDecide(c *cluster, p *past, marks int) bool {
	row := *c.rows[0]
	to := p.goneOn(marks)
	if len(to.x) < 3 {
		return false
	}
	n, m := len(p.x), len(to.x)
	row.births = p.bornOn(row.births, to, r.Series.axis.Unit)
	more := Tally{Blocks: int64(to.blocks[m-1] - to.blocks[n-1]), Bytes: snapshot.Bytes(to.sizes[m-1] - to.sizes[n-1])}
	row.After, row.Born = row.After.plus(more), row.Born.plus(more)
	last := *r.Last
	if r.Series.axis.Unit == Step {
		last.Mark.Step = int64(to.x[m-1])
	}
	if late := to.instants[m-1] - to.instants[n-1]; late > 0 && !last.History.Last.IsZero() {
		last.History.Last = last.History.Last.Add(duration(float64(late) / 1e6))
	}
	h := r.options.Without.judgedFrom(to, r.Series.axis.Unit)
	marked := fewMarks{varying: max(r.changed, r.few.varying), even: len(c.rows), marks: len(h.bytes)}
	q := h.p() * float64(max(1, len(r.Rows))) / float64(len(c.rows))
	// What is done again at marks evenly apart adds as much each time, whatever it is.
	without := append(slices.Clone(r.options.Without), evenMarks)
	return without.judge(&row, h, q, marked.enough() && h.even(), r.tides, r.First, &last).verdict != Inconclusive
}
