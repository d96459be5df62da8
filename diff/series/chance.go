package series

import (
	"math"

	"github.com/memdiag/memdiag/diff/trend"
)

// Chance is the chance of such a rise without a trend; 1 if no test is possible or the site does not rise. If its
// start was searched for, the chance is multiplied by the number of possible starts.
//
// Ranks alone decide about what climbs all the time and never falls. For all else they are too certain, since they
// ignore sizes: a random walk, or a few large steps, must not pass for growth. There, the drift must be significant
// as well. Growth that is equal in each interval, or ever larger, is neither, however few the intervals.
func (h *History) Chance() float64 {
	if h == nil || h.Test.Z <= 0 || len(h.Bytes) < Testable {
		return 1
	}
	ranks := h.Test.P
	p := ranks
	if !h.without.Has(driftClue) {
		p = max(p, 2*min(h.drift(Windows), h.drift(Windows/2))) // a noise cycle may be longer than a window
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

// drift is the chance that a walk without drift rises as far, over at most n windows. Thinned windows count as
// equally long, since their floors may lie anywhere in them.
func (h *History) drift(n int) float64 {
	x, y := trend.Floors(h.All.X, h.All.Bytes, n)
	if len(x) < len(h.All.X) {
		return trend.Drift(y)
	}
	return trend.DriftAlong(x, y)
}
