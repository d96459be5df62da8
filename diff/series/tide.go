package series

import (
	"math"
	"slices"
)

// Tide is the range over which a site rose and fell slowly (a common oscillation): it seldom turned, and no interval
// made most of the way. It is zero for any other site, and if there is a mark of each step.
type Tide struct{ blocks, Bytes float64 }

// Tide returns the site's slow oscillation; zero if it has none.
func (h *History) Tide() Tide {
	y := h.All.Bytes
	if h.EachStep() || !h.Varies() {
		return Tide{}
	}
	turns, fell, peak, widest := 0, 0.0, y[0], 0.0
	up := true
	for i := 1; i < len(y); i++ {
		widest = max(widest, math.Abs(y[i]-y[i-1]))
		if y[i] != y[i-1] && (y[i] > y[i-1]) != up {
			turns, up = turns+1, !up
		}
		peak = max(peak, y[i])
		fell = max(fell, peak-y[i])
	}
	width := func(v []float64) float64 { return slices.Max(v) - slices.Min(v) }
	if turns > max(1, len(y)/4) || 2*widest > width(y) || 2*fell < width(y) {
		return Tide{}
	}
	return Tide{width(h.All.Blocks), width(y)}
}

// Rides reports whether the site rose no further than one of the tides is wide. Seen at few moments, its growth may
// be another such oscillation.
func (h *History) Rides(tides []Tide) bool {
	n := len(h.Bytes) - 1
	return slices.ContainsFunc(tides, func(t Tide) bool {
		return h.Blocks[n]-h.Blocks[0] <= t.blocks && h.Bytes[n]-h.Bytes[0] <= t.Bytes
	})
}
