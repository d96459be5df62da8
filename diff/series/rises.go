package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// Rises are the places on the axis at which a site grew permanently: the rises of a series that never falls, or the
// births of its blocks if none was freed.
type Rises struct {
	At       []float64 // ascending, each once
	from, to float64   // the whole axis, with warm-up
	warm     float64   // the end of warm-up
	blur     float64   // how much later than observed a rise may be
	Wait     float64   // the smallest distance at which two rises can be told apart
	Unit     Unit
	minor    int // how many of At are less than minorShare of the largest, if sizes are known
}

// String is "12 times". For a recorder that watches few steps, and sees all rises between two of them as one, it is
// "in 12 stretches of 40 steps".
func (r *Rises) String() string {
	switch n := len(r.At); {
	case n == 1:
		return "once"
	case r.Wait > r.Unit.least():
		return fmt.Sprintf("in %d stretches of %s", n, r.Unit.Text(r.Wait))
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// RisesOf returns the rises of a site; nil if neither its series nor its births show them.
func RisesOf(h *History, row *Row, births bool) *Rises {
	w := &h.Whole
	if h.Unit == Place {
		return nil
	}
	r := &Rises{from: w.X[0], to: w.X[len(w.X)-1], warm: h.All.X[0], Wait: h.Unit.least(), Unit: h.Unit}
	if row.Births.Sampled() {
		r.blur = float64(slices.Max(row.Births.Weights))
	}
	if len(w.X)-1 >= Climbing || !births {
		if len(w.X)-1 < Climbing {
			w, r.from = &h.All, r.warm // the first of few intervals is warm-up
		}
		largest := 0.
		for i := 1; i < len(w.X); i++ {
			largest = max(largest, w.Bytes[i]-w.Bytes[i-1])
		}
		wait := r.Wait // the longest distance of two marks in the second half
		for i := 1; i < len(w.X); i++ {
			switch {
			case w.Bytes[i] < w.Bytes[i-1]:
				return nil
			case w.Bytes[i] > w.Bytes[i-1]:
				r.At = append(r.At, w.X[i])
				if w.Bytes[i]-w.Bytes[i-1] < minorShare*largest {
					r.minor++
				}
			}
			if 2*w.X[i] > r.from+r.to {
				wait = max(wait, w.X[i]-w.X[i-1])
			}
		}
		r.merge(max(wait, r.blur))
		return r
	}
	b := h.inSteps(&row.Births)
	if gone, _ := h.gone(row, b); !births || len(gone) == 0 || slices.Max(gone) > 0 {
		return nil
	}
	r.warm = min(r.warm, r.from+(r.to-r.from)/warmUpParts) // births are known step by step
	r.born(b)
	return r
}

// inSteps returns births by step if only their times are known, as in PyTorch's snapshots. Each snapshot has a step
// and a time, and the steps between two snapshots are assumed to last equally long.
func (h *History) inSteps(b *Births) *Births {
	x, at := h.Whole.X, make([]float64, len(h.Whole.X))
	for i, t := range h.Whole.Instants {
		at[i] = float64(t)
	}
	if h.Unit != Step || len(b.Steps) > 0 || len(b.Times) == 0 || at[0] == 0 || !slices.IsSorted(at) {
		return b
	}
	steps := make([]int64, len(b.Times))
	for i, t := range b.Times {
		steps[i] = int64(math.Ceil(trend.At(at, x, float64(t)))) - 1 // a block of step 7 is seen after it
	}
	return &Births{Steps: steps, Unknown: b.Unknown, Latest: b.Latest}
}

// Steady is Spread.Steady of the rises. If births are unknown, each rise was a birth.
func (r *Rises) Steady() bool {
	return Spread{Distinct: len(r.At), gap: trend.LargestGap(r.At, r.from, r.to)}.Steady()
}

// born sets the births as the rises.
func (r *Rises) born(b *Births) {
	for _, step := range Distinct(b.Steps) {
		r.At = append(r.At, float64(step)+1) // a block of step 7 is seen after it
	}
	r.merge(r.blur)
}

// merge keeps only the last rise of each stretch of this length. A recorder that saves time or space watches ever
// fewer steps, and sees ever fewer of even rises. Counted in stretches as long as its longest pause, even rises stay
// even.
func (r *Rises) merge(steps float64) {
	if steps <= r.Wait {
		return
	}
	r.Wait = steps
	if r.Unit == Second {
		steps *= 1 - jitter
	}
	stretch := func(x float64) float64 { return math.Floor((r.to - x) / steps) }
	last := r.At[:0]
	for i, x := range r.At {
		if i+1 == len(r.At) || stretch(r.At[i+1]) != stretch(x) {
			last = append(last, x)
		}
	}
	r.At = last
}

// gaps returns the distances between the rises.
func (r *Rises) gaps() []float64 {
	gaps := make([]float64, 0, len(r.At))
	for i := 1; i < len(r.At); i++ {
		gaps = append(gaps, r.At[i]-r.At[i-1])
	}
	return gaps
}

// Idle is the least time since the last rise.
func (r *Rises) Idle() float64 { return max(0, r.to-r.At[len(r.At)-1]-r.blur) }

// Overdue reports whether the rises are regular and the next one should have come.
func (r *Rises) Overdue() bool {
	gaps := r.gaps()
	if len(gaps) < regularGaps {
		return false
	}
	longest, shortest := slices.Max(gaps), slices.Min(gaps)
	if longest == shortest {
		return r.Idle() >= longest // exactly regular
	}
	return longest <= alikeGaps*shortest && r.Idle() > (1+overdue)*longest
}

// Silence is the chance that rises which go on at random moments leave a pause as long at the end; 1 if an earlier
// pause was as long.
func (r *Rises) Silence() float64 {
	if len(r.At) < 2 {
		return 1
	}
	idle := r.Idle()
	if idle <= slices.Max(r.gaps()) {
		return 1
	}
	return trend.Silence(len(r.At)-1, r.places(r.At[0]), int(idle/r.Wait))
}

// minorShare is the share of the largest rise below which a rise does not count as one of few. A dictionary of 652
// KB, full after half a second, gained 32 B two seconds later, and was left undecided because of that.
const minorShare = 1e-3

// MayBeFew reports whether there are two rises or more, but too few to know a rate, and chance alone often leaves
// such a pause at the end.
func (r *Rises) MayBeFew() bool {
	n := len(r.At) - r.minor
	return n >= 2 && n < Enough && trend.Silence(n, r.places(r.from), int(r.Idle()/r.Wait)) > Unlikely
}

// Slows reports whether the rises become rarer, as in a cache with a finite set of keys: the second half of the time
// since the first rise has far fewer rises, and fewer bytes, than the first half. A rate that fell once and stays is
// not meant.
func (r *Rises) Slows(w *Points) bool {
	if len(r.At) < 2 || r.SteadyLate() {
		return false
	}
	early := func(rest []float64, since float64, places int) bool {
		return trend.Fading(rest, since, r.to, places) <= Doubtful
	}
	// For kinds that run out, warm-up shows the most. With few rises, chance exceeds the limit of the ratio up to
	// four times as often as it should.
	fills := func(rest []float64, since float64, places int) bool {
		return trend.Filling(rest, since, r.to, places, Doubtful/4, fewer)
	}
	return r.rarer(w, max(r.warm, r.At[0]), early) || r.rarer(w, r.At[0], fills)
}

// rarer reports whether, of the rises since a moment, far fewer come in the second half, with fewer bytes, beyond
// chance. A rate that fell once and then stays does not count.
func (r *Rises) rarer(w *Points, since float64, beyondChance func(rest []float64, since float64, places int) bool) bool {
	half := (since + r.to) / 2
	if float64(r.between(half, r.to)) >= fewer*float64(r.between(since, half)) || !addsLess(w, half) {
		return false
	}
	next, found := slices.BinarySearch(r.At, since)
	if found {
		next++
	}
	rest, places := r.At[next:], r.places(since)
	return beyondChance(rest, since, places) && !trend.FellOnce(rest, since, r.to, places, Enough, Doubtful)
}

// places is how many rises could have been observed since a moment.
func (r *Rises) places(since float64) int { return int((r.to - since) / r.Wait) }

// addsLess reports whether far fewer bytes per unit came after a moment than before it, counted from the first rise.
func addsLess(w *Points, half float64) bool {
	n := len(w.X) - 1
	first := slices.IndexFunc(w.Bytes, func(y float64) bool { return y > w.Bytes[0] })
	if first < 0 || half <= w.X[first-1] || half >= w.X[n] {
		return false
	}
	middle := trend.At(w.X, w.Bytes, half)
	early, late := (middle-w.Bytes[0])/(half-w.X[first-1]), (w.Bytes[n]-middle)/(w.X[n]-half)
	return late < fewer*early
}

// between counts the rises at from or later and before to, or at the end of the axis.
func (r *Rises) between(from, to float64) int {
	n := 0
	for _, x := range r.At {
		if from <= x && (x < to || x == r.to) {
			n++
		}
	}
	return n
}

// SteadyLate reports whether there are many rises in the second half, at regular distances up to the end. They go on,
// however many more, or larger ones, there were before.
func (r *Rises) SteadyLate() bool {
	half := (r.from + r.to) / 2
	i, _ := slices.BinarySearch(r.At, half)
	late := r.At[i:]
	return len(late) >= Enough && trend.LargestGap(late, half, r.to)*float64(len(late)) <= alikeGaps
}
