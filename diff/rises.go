package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// rises are the places on the axis at which a site grew for good: those of counters
// that never fall, or the births of its blocks if all of them stayed.
type rises struct {
	at       []float64 // ascending, each once
	from, to float64   // what was looked at, with warm-up
	warm     float64   // the end of warm-up
	blur     float64   // by how much a rise may be later than seen
	wait     float64   // the least distance of two that can be told apart
	unit     Unit
}

// String is "12 times", or of a recorder that looks seldom, which sees what rises between two
// looks as one, "in 12 stretches of 40 steps".
func (r *rises) String() string {
	switch n := len(r.at); {
	case n == 1:
		return "once"
	case r.wait > r.unit.least():
		return fmt.Sprintf("in %d stretches of %s", n, r.unit.text(r.wait))
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// risesOf is nil where neither tells.
func risesOf(h *history, row *Row, births bool) *rises {
	w := &h.whole
	if h.unit == Place {
		return nil
	}
	r := &rises{from: w.x[0], to: w.x[len(w.x)-1], warm: h.all.x[0], wait: h.unit.least(), unit: h.unit}
	if row.births.sampled() {
		r.blur = float64(slices.Max(row.births.weights))
	}
	if len(w.x)-1 >= climbing || !births {
		if len(w.x)-1 < climbing {
			w, r.from = &h.all, r.warm // the first of few intervals is warm-up
		}
		wait := r.wait // between two marks, of late
		for i := 1; i < len(w.x); i++ {
			switch {
			case w.bytes[i] < w.bytes[i-1]:
				return nil
			case w.bytes[i] > w.bytes[i-1]:
				r.at = append(r.at, w.x[i])
			}
			if 2*w.x[i] > r.from+r.to {
				wait = max(wait, w.x[i]-w.x[i-1])
			}
		}
		r.merge(max(wait, r.blur))
		return r
	}
	if gone, _ := h.gone(row); !births || len(gone) == 0 || slices.Max(gone) > 0 {
		return nil
	}
	r.warm = min(r.warm, r.from+(r.to-r.from)/warmUpParts) // births are seen step by step
	r.born(&row.births)
	return r
}

// steady is that of births, of the rises themselves: where nobody knows when blocks were born, a rise was a birth.
func (r *rises) steady() bool {
	return spread{distinct: len(r.at), gap: trend.LargestGap(r.at, r.from, r.to)}.steady()
}

// born takes births for the moments.
func (r *rises) born(b *births) {
	for _, step := range distinct(b.steps) {
		r.at = append(r.at, float64(step)+1) // a block of step 7 is seen behind it
	}
	r.merge(r.blur)
}

// merge leaves one of the moments in each stretch of so many steps, the last: where a
// recorder looks ever more rarely, as one does that saves time or space, it sees ever
// fewer of what comes evenly. Counted in stretches as long as its longest wait, what
// comes evenly is even.
func (r *rises) merge(steps float64) {
	if steps <= r.wait {
		return
	}
	r.wait = steps
	if r.unit == Second {
		steps *= 1 - jitter
	}
	stretch := func(x float64) float64 { return math.Floor((r.to - x) / steps) }
	last := r.at[:0]
	for i, x := range r.at {
		if i+1 == len(r.at) || stretch(r.at[i+1]) != stretch(x) {
			last = append(last, x)
		}
	}
	r.at = last
}

// gaps are the distances of the rises.
func (r *rises) gaps() []float64 {
	gaps := make([]float64, 0, len(r.at))
	for i := 1; i < len(r.at); i++ {
		gaps = append(gaps, r.at[i]-r.at[i-1])
	}
	return gaps
}

// idle is how long the last rise is ago, at least.
func (r *rises) idle() float64 { return max(0, r.to-r.at[len(r.at)-1]-r.blur) }

// overdue holds for rises at regular distances of which the next should have come.
func (r *rises) overdue() bool {
	gaps := r.gaps()
	if len(gaps) < regularGaps {
		return false
	}
	longest, shortest := slices.Max(gaps), slices.Min(gaps)
	if longest == shortest {
		return r.idle() >= longest // to the step
	}
	return longest <= alikeGaps*shortest && r.idle() > (1+overdue)*longest
}

// silence is the chance that rises which go on at random moments leave as long a time
// without one at the end; it is 1 where as long a time has passed between two of them.
func (r *rises) silence() float64 {
	if len(r.at) < 2 {
		return 1
	}
	idle := r.idle()
	if idle <= slices.Max(r.gaps()) {
		return 1
	}
	return trend.Silence(len(r.at)-1, r.places(r.at[0]), int(idle/r.wait))
}

// mayBeFew holds for two rises or more, too few to tell a rate, whose end chance leaves
// often enough.
func (r *rises) mayBeFew() bool {
	n := len(r.at)
	return n >= 2 && n < enough && trend.Silence(n, r.places(r.from), int(r.idle()/r.wait)) > unlikely
}

// slows holds for rises that come more and more rarely, as in a cache over a finite set
// of keys: in the second half of the time since the first of them, far fewer than in
// the first half, and fewer bytes. What goes on at a lower rate is not meant.
func (r *rises) slows(w *points) bool {
	if len(r.at) < 2 || r.steadyLate() {
		return false
	}
	early := func(rest []float64, since float64, places int) bool {
		return trend.Fading(rest, since, r.to, places) <= doubtful
	}
	// Of kinds that run out, warm-up tells the most. Of few rises the ratio is as large by
	// chance up to four times as often as its limit tells.
	fills := func(rest []float64, since float64, places int) bool {
		return trend.Filling(rest, since, r.to, places, doubtful/4, fewer)
	}
	return r.rarer(w, max(r.warm, r.at[0]), early) || r.rarer(w, r.at[0], fills)
}

// rarer holds for rises since a moment of which far fewer come in the second half, and
// fewer bytes, as chance hardly does, unless their rate fell once and goes on.
func (r *rises) rarer(w *points, since float64, beyondChance func(rest []float64, since float64, places int) bool) bool {
	half := (since + r.to) / 2
	if float64(r.between(half, r.to)) >= fewer*float64(r.between(since, half)) || !addsLess(w, half) {
		return false
	}
	next, found := slices.BinarySearch(r.at, since)
	if found {
		next++
	}
	rest, places := r.at[next:], r.places(since)
	return beyondChance(rest, since, places) && !trend.FellOnce(rest, since, r.to, places, enough, doubtful)
}

// places is how many rises could have been seen since a moment.
func (r *rises) places(since float64) int { return int((r.to - since) / r.wait) }

// addsLess reports whether behind a moment far fewer bytes came a step than before it, since
// the first that came.
func addsLess(w *points, half float64) bool {
	n := len(w.x) - 1
	first := slices.IndexFunc(w.bytes, func(y float64) bool { return y > w.bytes[0] })
	if first < 0 || half <= w.x[first-1] || half >= w.x[n] {
		return false
	}
	middle := trend.At(w.x, w.bytes, half)
	early, late := (middle-w.bytes[0])/(half-w.x[first-1]), (w.bytes[n]-middle)/(w.x[n]-half)
	return late < fewer*early
}

// between counts the rises from one moment on up to another, which is not counted but
// at the end.
func (r *rises) between(from, to float64) int {
	n := 0
	for _, x := range r.at {
		if from <= x && (x < to || x == r.to) {
			n++
		}
	}
	return n
}

// steadyLate holds for many rises in the second half at regular distances up to the
// end: they go on, however many more, or larger ones, there were before.
func (r *rises) steadyLate() bool {
	half := (r.from + r.to) / 2
	i, _ := slices.BinarySearch(r.at, half)
	late := r.at[i:]
	return len(late) >= enough && trend.LargestGap(late, half, r.to)*float64(len(late)) <= alikeGaps
}
