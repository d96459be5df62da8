package series

import (
	"math"

	"github.com/memdiag/memdiag/diff/trend"
)

// Even reports whether growth shows what few marks must show to be called a leak at all: it rises in each interval,
// at rates that differ by a factor of two at most, and at least doubles in all.
func (h *History) Even() bool { return h != nil && h.evenBy(h.X, evenOfFew) }

// evenBy is Even with rates along x that differ by at most factor.
func (h *History) evenBy(x []float64, factor float64) bool {
	y := h.Bytes
	least, most := math.Inf(1), 0.0
	for i := 1; i < len(y); i++ {
		rate := (y[i] - y[i-1]) / (x[i] - x[i-1])
		least, most = min(least, rate), max(most, rate)
	}
	return least > 0 && most <= factor*least && y[len(y)-1] >= 2*y[0]
}

// Same reports whether each interval adds the same per unit.
func (h *History) Same() bool { return h.evenBy(h.X, evenRates) }

// SameAtMarks reports whether each interval by the clock adds the same, however long it lasted. A program that writes
// a snapshot every few steps does so.
func (h *History) SameAtMarks() bool {
	places := make([]float64, len(h.X))
	for i := range places {
		places[i] = float64(i)
	}
	return h.Unit == Second && h.evenBy(places, evenRates)
}

// EvenChance is the approximate chance that a site that varies at random is even over n marks: n values rise each
// time with chance 1/n!, and two increments differ by at most a factor of two with chance 1/3.
func EvenChance(n int) float64 {
	p := 1.0
	for i := 2; i <= n; i++ {
		p /= float64(i)
	}
	return p / math.Pow(3, float64(max(0, n-2)))
}

// speedsUpChance is the chance that a random series rises in each interval, and by ever more. If increments are as
// often negative as positive, all are positive in one case of 2^n, and then any order of them is equally likely. It
// is 1 unless the series does both.
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
