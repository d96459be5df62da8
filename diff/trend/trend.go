// Package trend has the statistics of growth. It knows nothing of memory.
package trend

import (
	"math"
	"slices"
)

// Slope is a robust line through points: the change of y per unit of x, a 95 % interval, and the number of points.
type Slope struct {
	Value, Low, High float64
	N                int
}

// TheilSen returns the median of the slopes between all pairs of points, with
// the interval of Sen (1968) from the variance of Kendall's S under ties. Points
// of equal x give no slope. Fewer than two distinct x give a zero Slope; with
// fewer than four points the interval is the range of the slopes. Cost is
// quadratic in the number of points: thin long series first (see Floors).
func TheilSen(x, y []float64) Slope {
	slopes := make([]float64, 0, len(x)*(len(x)-1)/2)
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			if x[i] != x[j] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return Slope{N: len(x)}
	}
	slices.Sort(slopes)
	n := len(slopes)
	s := Slope{Value: median(slopes), Low: slopes[0], High: slopes[n-1], N: len(x)}
	if len(x) >= 4 {
		const z = 1.959964 // of 97.5 % of the standard normal
		c := z * math.Sqrt(kendallVariance(y))
		low := int(math.RoundToEven((float64(n)-c)/2)) - 1
		high := int(math.RoundToEven((float64(n) + c) / 2))
		s.Low, s.High = slopes[max(low, 0)], slopes[min(high, n-1)]
	}
	return s
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// kendallVariance is the variance of Kendall's S for values with ties (Kendall
// 1975): (n(n-1)(2n+5) - sum t(t-1)(2t+5)) / 18.
func kendallVariance(y []float64) float64 {
	term := func(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) }
	sorted := slices.Sorted(slices.Values(y))
	v := term(len(y))
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		v -= term(j - i)
		i = j
	}
	return v / 18
}

// Floors thins a series to at most n windows of equal numbers of points. It returns each window's smallest y, with
// its x. A series of at most n points is returned unchanged. What rises and falls within a window, such as gradient
// accumulation, leaves no trace.
func Floors(x, y []float64, n int) (fx, fy []float64) {
	if len(x) <= n {
		return slices.Clone(x), slices.Clone(y)
	}
	for w := range n {
		from, to := w*len(x)/n, (w+1)*len(x)/n
		at := from
		for i := from; i < to; i++ {
			if y[i] < y[at] {
				at = i
			}
		}
		fx, fy = append(fx, x[at]), append(fy, y[at])
	}
	return fx, fy
}

// At interpolates y linearly at a place of the ascending x. Beyond the ends it is the nearest value.
func At(x, y []float64, at float64) float64 {
	i, exact := slices.BinarySearch(x, at)
	switch {
	case exact || i == 0:
		return y[i]
	case i == len(x):
		return y[i-1]
	}
	return y[i-1] + (y[i]-y[i-1])*(at-x[i-1])/(x[i]-x[i-1])
}

// LargestGap returns the longest stretch between from and to in which no event
// falls, as a share of that stretch: 1 for no events, near 0 for events spread
// evenly and densely. Events outside count as at the nearer end.
func LargestGap(events []float64, from, to float64) float64 {
	if to <= from {
		return 1
	}
	sorted := slices.Sorted(slices.Values(events))
	last, gap := from, 0.0
	for _, e := range sorted {
		e = min(max(e, from), to)
		gap = max(gap, e-last)
		last = e
	}
	return max(gap, to-last) / (to - from)
}
