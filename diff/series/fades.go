package series

import "math"

// mostSpread is the most arrivals that spread returns, however many blocks there are.
const mostSpread = 10_000

// Fades reports whether each interval brings fewer new blocks, as in a cache that fills, even if each interval has a
// rise. It is for sites that never fall and whose births are unknown.
func (h *History) Fades() bool {
	r := h.spread()
	return r != nil && len(r.At) >= Enough && r.Slows(&h.Whole)
}

// SlowsDown reports whether the rises of a site become rarer, or, without known births, bring fewer blocks.
func (h *History) SlowsDown(rises *Rises, born bool) bool {
	return rises != nil && (rises.Slows(&h.Whole) || !born && h.Fades())
}

// spread returns rises as if the blocks of each interval came evenly within it; nil if the number ever falls.
func (h *History) spread() *Rises {
	x, y := h.Whole.X, h.Whole.Blocks
	n := len(x) - 1
	if h.Unit == Place || len(h.X) < Testable {
		return nil
	}
	r := &Rises{from: x[0], to: x[n], warm: h.All.X[0], Wait: h.Unit.least(), Unit: h.Unit}
	clump := max(clumps(h.All.Blocks), (y[n]-y[0])/mostSpread)
	for i := 1; i <= n; i++ {
		came := math.Round((y[i] - y[i-1]) / clump)
		if y[i] < y[i-1] {
			return nil
		}
		r.Wait = min(r.Wait, (x[i]-x[i-1])/max(1, came))
		for k := range int(came) {
			r.At = append(r.At, x[i-1]+(x[i]-x[i-1])*float64(k+1)/came)
		}
	}
	return r
}

// clumps estimates how many blocks come at once, at least one: by how much more than a Poisson process the numbers of
// neighbouring intervals differ.
func clumps(y []float64) float64 {
	n := len(y) - 1
	sum := 0.0
	for i := 2; i <= n; i++ {
		d := (y[i] - y[i-1]) - (y[i-1] - y[i-2])
		sum += d * d / 2
	}
	return max(1, sum*float64(n)/float64(n-1)/max(1, y[n]-y[0]))
}
