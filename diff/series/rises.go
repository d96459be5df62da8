package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// Rises are the places on the axis at which a site grew for good: those of counters
// that never fall, or the births of its blocks if all of them stayed.
type Rises struct {
	At       []float64 // ascending, each once
	from, to float64   // what was looked at, with warm-up
	warm     float64   // the end of warm-up
	blur     float64   // by how much a rise may be later than seen
	Wait     float64   // the least distance of two that can be told apart
	Unit     Unit
	minor    int // of them, those of less than a thousandth of the largest, where sizes are known
}

// String is "12 times", or of a recorder that looks seldom, which sees what rises between two
// looks as one, "in 12 stretches of 40 steps".
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

// RisesOf is nil where neither tells.
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
		wait := r.Wait // between two marks, of late
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
	r.warm = min(r.warm, r.from+(r.to-r.from)/warmUpParts) // births are seen step by step
	r.born(b)
	return r
}

// inSteps are births by step where only their times are known, as of PyTorch's snapshots: each snapshot has a step and a time, and
// between two of them steps are taken to last alike.
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
		steps[i] = int64(math.Ceil(trend.At(at, x, float64(t)))) - 1 // a block of step 7 is seen behind it
	}
	return &Births{Steps: steps, Unknown: b.Unknown, Latest: b.Latest}
}

// Steady is that of births, of the rises themselves: where nobody knows when blocks were born, a rise was a birth.
func (r *Rises) Steady() bool {
	return Spread{Distinct: len(r.At), gap: trend.LargestGap(r.At, r.from, r.to)}.Steady()
}

// born takes births for the moments.
func (r *Rises) born(b *Births) {
	for _, step := range Distinct(b.Steps) {
		r.At = append(r.At, float64(step)+1) // a block of step 7 is seen behind it
	}
	r.merge(r.blur)
}

// merge leaves one of the moments in each stretch of so many steps, the last: where a
// recorder looks more and more rarely, as one does that saves time or space, it sees ever
// fewer of what comes evenly. Counted in stretches as long as its longest wait, what
// comes evenly is even.
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

// gaps are the distances of the rises.
func (r *Rises) gaps() []float64 {
	gaps := make([]float64, 0, len(r.At))
	for i := 1; i < len(r.At); i++ {
		gaps = append(gaps, r.At[i]-r.At[i-1])
	}
	return gaps
}

// Idle is how long the last rise is ago, at least.
func (r *Rises) Idle() float64 { return max(0, r.to-r.At[len(r.At)-1]-r.blur) }

// Overdue is true for rises at regular distances of which the next should have come.
func (r *Rises) Overdue() bool {
	gaps := r.gaps()
	if len(gaps) < regularGaps {
		return false
	}
	longest, shortest := slices.Max(gaps), slices.Min(gaps)
	if longest == shortest {
		return r.Idle() >= longest // to the step
	}
	return longest <= alikeGaps*shortest && r.Idle() > (1+overdue)*longest
}

// Silence is the chance that rises which go on at random moments leave as long a time
// without one at the end; it is 1 where as long a time has passed between two of them.
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

// minorShare is what a rise must have of the largest to count where few do: a dictionary of 652 KB, which was full after half a
// second, gained 32 B two seconds later and was undecided for it.
const minorShare = 1e-3

// MayBeFew is true for two rises or more, too few to tell a rate, whose end chance leaves
// often enough.
func (r *Rises) MayBeFew() bool {
	n := len(r.At) - r.minor
	return n >= 2 && n < Enough && trend.Silence(n, r.places(r.from), int(r.Idle()/r.Wait)) > Unlikely
}

// Slows is true for rises that come more and more rarely, as in a cache over a finite set
// of keys: in the second half of the time since the first of them, far fewer than in
// the first half, and fewer bytes. What goes on at a lower rate is not meant.
func (r *Rises) Slows(w *Points) bool {
	if len(r.At) < 2 || r.SteadyLate() {
		return false
	}
	early := func(rest []float64, since float64, places int) bool {
		return trend.Fading(rest, since, r.to, places) <= Doubtful
	}
	// Of kinds that run out, warm-up tells the most. Of few rises the ratio is as large by
	// chance up to four times as often as its limit tells.
	fills := func(rest []float64, since float64, places int) bool {
		return trend.Filling(rest, since, r.to, places, Doubtful/4, fewer)
	}
	return r.rarer(w, max(r.warm, r.At[0]), early) || r.rarer(w, r.At[0], fills)
}

// rarer is true for rises since a moment of which far fewer come in the second half, and
// fewer bytes, as chance hardly does, unless their rate fell once and goes on.
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

// places is how many rises could have been seen since a moment.
func (r *Rises) places(since float64) int { return int((r.to - since) / r.Wait) }

// addsLess reports whether behind a moment far fewer bytes came a step than before it, since
// the first that came.
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

// between counts the rises from one moment on up to another, which is not counted but
// At the end.
func (r *Rises) between(from, to float64) int {
	n := 0
	for _, x := range r.At {
		if from <= x && (x < to || x == r.to) {
			n++
		}
	}
	return n
}

// SteadyLate is true for many rises in the second half at regular distances up to the
// end: they go on, however many more, or larger ones, there were before.
func (r *Rises) SteadyLate() bool {
	half := (r.from + r.to) / 2
	i, _ := slices.BinarySearch(r.At, half)
	late := r.At[i:]
	return len(late) >= Enough && trend.LargestGap(late, half, r.to)*float64(len(late)) <= alikeGaps
}
