package series

import (
	"math"
)

// Even reports whether growth is what few marks must show to be called a leak at all:
// in each interval, at about the same rate, and in all at least as much as there was.
func (h *History) Even() bool { return h.evenBy(evenOfFew) }

// evenBy is even, where rates differ by no more than this factor.
func (h *History) evenBy(factor float64) bool {
	if h == nil {
		return false
	}
	y := h.Bytes
	least, most := math.Inf(1), 0.0
	for i := 1; i < len(y); i++ {
		rate := (y[i] - y[i-1]) / (h.X[i] - h.X[i-1])
		least, most = min(least, rate), max(most, rate)
	}
	return least > 0 && most <= factor*least && y[len(y)-1] >= 2*y[0]
}

// Same reports whether each interval adds the same, and marks are too few for ranks to tell
// much.
func (h *History) Same() bool { return len(h.Bytes) < Climbing && h.evenBy(evenRates) }

// EvenChance is about how likely a site that varies by chance is even over n marks:
// that n values rise each time has 1/n!, and that two steps differ by no more than
// a factor of two, 1/3.
func EvenChance(n int) float64 {
	p := 1.0
	for i := 2; i <= n; i++ {
		p /= float64(i)
	}
	return p / math.Pow(3, float64(max(0, n-2)))
}
