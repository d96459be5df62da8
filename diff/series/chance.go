package series

import (
	"math"

	"github.com/memdiag/memdiag/diff/trend"
)

// Chance is the site's chance of rising so without a trend; 1 where no test is
// possible or it does not rise. A start that was looked for makes chance likelier
// by the number of starts there were to find.
//
// What climbs all along without ever falling is judged by its ranks. Of all else ranks
// alone are too sure: they are blind to size, and a walk, or a few large steps, must not
// pass for growth, so that the drift must be sure as well. But what adds the same in each
// interval, or ever more, is neither, however few they are.
func (h *History) Chance() float64 {
	if h == nil || h.Test.Z <= 0 || len(h.Bytes) < Testable {
		return 1
	}
	ranks := h.Test.P
	p := ranks
	if !h.without.Has(driftClue) {
		p = max(p, 2*min(h.drift(Windows), h.drift(Windows/2))) // noise may be wider than a window
	}
	if !h.without.Has(sameClue) {
		switch {
		case h.Same():
			p = min(p, EvenChance(len(h.Bytes)))
		case h.SameAtMarks():
			p = min(p, 2*EvenChance(len(h.Bytes)))
		}
	}
	if !h.without.Has(speedsUpClue) {
		p = min(p, speedsUpChance(h.X, h.Bytes))
	}
	if !h.without.Has(climbsClue) && len(h.All.X) >= Climbing && trend.Climbs(h.All.X, h.All.Bytes, FewStairs, LongestGap) {
		if !h.EachStep() {
			ranks = max(ranks, math.Ldexp(1, -Rising(h.All.Bytes)))
		}
		p = min(p, ranks)
	}
	return min(1, p*h.tries)
}

// drift is the chance that a walk without one rose as far, over at most n windows, which
// are alike wherever in them the floors are.
func (h *History) drift(n int) float64 {
	x, y := trend.Floors(h.All.X, h.All.Bytes, n)
	if len(x) < len(h.All.X) {
		return trend.Drift(y)
	}
	return trend.DriftAlong(x, y)
}
