package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// KeepsRising reports whether floors at x rise up to the end, or why not: one jump makes most of the growth, or the
// curve flattens. The middle is that of x, since marks may lie farther and farther apart.
func (w Without) KeepsRising(x, y []float64) (ok bool, why string) {
	n := len(y) - 1
	total := y[n] - y[0]
	if total <= 0 || y[n] <= y[middle(x)] {
		return false, "it is no larger at the end than half-way"
	}
	if n < 3 {
		return true, ""
	}
	for i := 1; i <= n; i++ {
		jump, share := y[i]-y[i-1], (x[i]-x[i-1])/(x[n]-x[0])
		if jump > total/2 && jump > steepJump*share*total && !w.Has(jumpClue) {
			return false, "more than half of its growth came in one jump"
		}
	}
	late, _ := slices.BinarySearch(x, x[0]+LateBegins*(x[n]-x[0]))
	late = min(late, n-1)
	if (y[n]-y[late])*(x[n]-x[0]) < LateShare*total*(x[n]-x[late]) && !w.Has(flatClue) {
		return false, fmt.Sprintf("it flattens: in the last %.0f %% of the run it grows at less than %.1f of its average rate", 100*(1-LateBegins), LateShare)
	}
	return true, ""
}

// GoesOnAtLast reports whether only the last floor shows that the site goes on. A recorder, or the program's end, may
// allocate that much once.
func (h *History) GoesOnAtLast() bool {
	n := len(h.X) - 1
	if n < Testable {
		return false
	}
	on, _ := h.without.KeepsRising(h.X[:n], h.Bytes[:n])
	return !on
}

// JumpsLast reports whether the last mark exceeds all others by more than half of the growth, in at least Enough new
// blocks. The program may have begun its work there.
func (h *History) JumpsLast() bool {
	y, b, n := h.Whole.Bytes, h.Whole.Blocks, len(h.Whole.Bytes)-1
	return 2*(y[n]-slices.Max(y[:n])) > y[n]-y[0] && b[n]-b[n-1] >= Enough
}

// BornToTheEnd reports whether the blocks of the last interval were born in many of its steps, up to the end. State
// that is allocated once, or by one layer after another, is born in few. It is true for sampled blocks, since the
// births of the blocks that they stand for are unknown.
func (h *History) BornToTheEnd(row *Row) bool {
	if row.Births.Sampled() {
		return true
	}
	x, at, end := h.Whole.X, h.Whole.Instants, len(h.Whole.X)-1
	steps := row.Births.Steps
	if times := row.Births.Times; len(times) > len(steps) && at[end] > at[end-1] {
		steps = make([]int64, len(times))
		for i, t := range times {
			steps[i] = int64(math.Floor(x[end-1] + (x[end]-x[end-1])*float64(t-at[end-1])/float64(at[end]-at[end-1])))
		}
	}
	var born []float64
	for _, step := range Distinct(steps) {
		if v := float64(step); v >= x[end-1] {
			born = append(born, v)
		}
	}
	return len(born) >= Enough && trend.LargestGap(born, born[0], x[end]) <= LongestGap
}

// Tapers reports whether the site, or a device, rose at each mark, and then far less at the end, as where a buffer is full.
func Tapers(x, bytes []float64) bool { return trend.Tapers(x, bytes, Testable, endPart, fewer) }

// middle is the index of the last value up to the middle of the ascending x.
func middle(x []float64) int {
	i, exact := slices.BinarySearch(x, (x[0]+x[len(x)-1])/2)
	if !exact {
		i--
	}
	return i
}

// GoesOn reports whether the site rises up to the end, or why not. stopped reports that the time since its last rise
// is too long for growth that goes on.
func (h *History) GoesOn() (ok, stopped bool, why string) {
	idle, stopped := trend.Stopped(h.All.X, h.All.Bytes)
	stopped = stopped && !h.without.Has(stoppedClue)
	if ok, why = h.without.KeepsRising(h.X, h.Bytes); !ok && !h.without.Has(countClue) && h.Bytes[len(h.Bytes)-1] > h.Bytes[middle(h.X)] {
		// One block that is larger than all others hides the change of their number.
		ok, _ = h.without.KeepsRising(h.X, h.Blocks)
	}
	if ok && stopped {
		return false, true, fmt.Sprintf("it stopped: it has been constant for the last %s, and was never constant for half as long before", h.Unit.Text(idle))
	}
	return ok, stopped, why
}
