package series

import (
	"math"

	"github.com/memdiag/memdiag/diff/trend"
)

// Even reports whether growth is what few marks must show to be called a leak at all:
// in each interval, at about the same rate, and in all at least as much as there was.
func (h *History) Even() bool { return h != nil && h.evenBy(h.X, evenOfFew) }

// evenBy is even, where rates along x differ by no more than this factor.
func (h *History) evenBy(x []float64, factor float64) bool {
	y := h.Bytes
	least, most := math.Inf(1), 0.0
	for i := 1; i < len(y); i++ {
		rate := (y[i] - y[i-1]) / (x[i] - x[i-1])
		least, most = min(least, rate), max(most, rate)
	}
	return least > 0 && most <= factor*least && y[len(y)-1] >= 2*y[0]
}

// Same reports whether each interval adds the same for its length.
func (h *History) Same() bool { return h.evenBy(h.X, evenRates) }

// SameAtMarks reports whether each interval by the clock adds the same, however long it lasted: a program that writes a snapshot
// every so many steps does so.
func (h *History) SameAtMarks() bool {
	places := make([]float64, len(h.X))
	for i := range places {
		places[i] = float64(i)
	}
	return h.Unit == Second && h.evenBy(places, evenRates)
}

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

// speedsUpChance is how likely what varies by chance rises in each interval, and by ever more: where increments are as often down
// as up, all are up in one case of 2^n, and of these their order is any. It is 1 unless both are so.
func speedsUpChance(x, y []float64) float64 {
	rates := make([]float64, len(y)-1)
	for i := range rates {
		rates[i] = (y[i+1] - y[i]) / (x[i+1] - x[i])
	}
	order := trend.MannKendall(rates)
	if Rising(y) < len(rates) || order.Z <= 0 {
		return 1
	}
	return math.Ldexp(order.P/2, -len(rates))
}
