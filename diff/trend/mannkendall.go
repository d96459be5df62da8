package trend

import (
	"math"
	"slices"
)

// Test is the outcome of a test for monotone trend.
type Test struct {
	S float64 // Kendall's score: pairs that rise minus pairs that fall
	Z float64 // its normal deviate, positive for a rise
	P float64 // two-sided
	N int
}

// MannKendall tests y, in order, for a monotone trend (Mann 1945, Kendall 1975), with the variance corrected for
// ties. P is 1 if all values are equal.
func MannKendall(y []float64) Test { return test(y, 1) }

// HamedRao is MannKendall with the variance also corrected for autocorrelation (Hamed and Rao 1998): of the ranks of
// the series minus its Theil–Sen line, at lags whose correlation is significant at 5 %. Strong negative correlation
// can leave no variance; then there is no correction.
func HamedRao(y []float64) Test {
	n := len(y)
	if n < 4 {
		return MannKendall(y)
	}
	x, rest := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	slope := TheilSen(x, y).Value
	for i := range rest {
		rest[i] = y[i] - slope*float64(i)
	}
	significant := 1.959964 / math.Sqrt(float64(n))
	sum := 0.0
	for lag, r := range autocorrelation(ranks(rest)) {
		if lag > 0 && math.Abs(r) > significant {
			sum += float64(n-lag) * float64(n-lag-1) * float64(n-lag-2) * r
		}
	}
	correction := 1 + 2*sum/(float64(n)*float64(n-1)*float64(n-2))
	if correction <= 0 {
		correction = 1
	}
	return test(y, correction)
}

// test is the Mann–Kendall test with its variance multiplied by a correction above zero. P is 1 if all values are
// equal.
func test(y []float64, correction float64) Test {
	t := Test{N: len(y), P: 1}
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			switch {
			case y[j] > y[i]:
				t.S++
			case y[j] < y[i]:
				t.S--
			}
		}
	}
	v := kendallVariance(y) * correction
	if t.S == 0 || v <= 0 {
		return t
	}
	t.Z = (math.Abs(t.S) - 1) / math.Sqrt(v) // continuity correction
	// Two of the n! orders are monotone. No other order is less likely, whatever the correction.
	t.P = max(math.Erfc(t.Z/math.Sqrt2), 2/math.Gamma(float64(t.N+1)))
	t.Z = math.Copysign(t.Z, t.S)
	return t
}

// ranks returns the ranks 1 … n; ties share their mean.
func ranks(y []float64) []float64 {
	order := make([]int, len(y))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case y[i] < y[j]:
			return -1
		case y[i] > y[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(y))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && y[order[j]] == y[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// autocorrelation returns the correlation of y with itself at lags 0 … n-1; all
// zero for a constant.
func autocorrelation(y []float64) []float64 {
	mean := 0.0
	for _, v := range y {
		mean += v
	}
	mean /= float64(len(y))
	out := make([]float64, len(y))
	variance := 0.0
	for _, v := range y {
		variance += (v - mean) * (v - mean)
	}
	if variance == 0 {
		return out
	}
	for lag := range out {
		for i := range y[lag:] {
			out[lag] += (y[i] - mean) * (y[i+lag] - mean)
		}
		out[lag] /= variance
	}
	return out
}

// BenjaminiHochberg returns adjusted p-values of many tests. If all tests with an adjusted value up to q count as
// discoveries, the expected share of false ones is at most q (Benjamini and Hochberg 1995).
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return i - j
	})
	out := make([]float64, len(p))
	least := 1.0
	for k := len(order) - 1; k >= 0; k-- {
		least = min(least, p[order[k]]*float64(len(p))/float64(k+1))
		out[order[k]] = least
	}
	return out
}
