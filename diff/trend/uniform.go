package trend

import (
	"math"
	"slices"
)

// Uniform compares events with an even spread over [low, high]. d is the largest distance between their distribution
// and the even one (Kolmogorov–Smirnov), and p the chance of such a distance for as many random events. Events at
// equal distances have a p near 1. p uses Stephens's (1970) modification of the asymptotic distribution, which is
// within 0.005 of the exact one from five events on if p is below 0.2. Without events, or if high <= low, d is 1 and
// p is 0.
func Uniform(events []float64, low, high float64) (d, p float64) {
	n := len(events)
	if n == 0 || high <= low {
		return 1, 0
	}
	sorted := slices.Sorted(slices.Values(events))
	for i, e := range sorted {
		u := min(max((e-low)/(high-low), 0), 1)
		d = max(d, u-float64(i)/float64(n), float64(i+1)/float64(n)-u)
	}
	root := math.Sqrt(float64(n))
	return d, kolmogorov((root + 0.12 + 0.11/root) * d)
}

// kolmogorov is the upper tail of Kolmogorov's distribution.
func kolmogorov(x float64) float64 {
	if x < 0.2 {
		return 1 // to fifteen digits, and the series hardly converges
	}
	sum := 0.0
	for k := 1; k <= 100; k++ {
		term := math.Exp(-2 * float64(k*k) * x * x)
		if k%2 == 0 {
			term = -term
		}
		sum += term
		if math.Abs(term) < 1e-16 {
			break
		}
	}
	return min(max(2*sum, 0), 1)
}
