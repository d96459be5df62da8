package trend

import "math"

// Rate is TheilSen's slope, with an interval that also holds for events at random moments whose growth stays.
//
// Such growth is not a line with noise, but a walk with a drift: what happens in one interval is part of all later
// points. They lie close to a straight line whose slope is wrong, and Sen's interval, which assumes independent
// errors, contains the true slope in one case of three only. The variance of the walk is that of its increments,
// scaled by their length. If neighbouring increments differ strongly, or points fall, noise is what they have in
// common. Then twice their covariance is added (the long-run variance with one lag; Newey and West 1987). An end of
// the walk may always be early or late by one event.
func Rate(x, y []float64) Slope {
	s := TheilSen(x, y)
	n := len(x) - 1
	if n < 3 || x[n] <= x[0] {
		return s
	}
	length := x[n] - x[0]
	even := (y[n] - y[0]) / length
	own, neighbours, before := 0.0, 0.0, 0.0
	least, falls := math.Inf(1), false
	for i := range n {
		dx, dy := x[i+1]-x[i], y[i+1]-y[i]
		if dx <= 0 {
			return s
		}
		excess := (dy - even*dx) / math.Sqrt(dx)
		own += excess * excess
		neighbours += excess * before
		before = excess
		if dy > 0 {
			least = min(least, dy)
		}
		falls = falls || dy < 0
	}
	const rounding = 1e-9
	if own <= rounding*even*even*length {
		return s
	}
	// One-sided, at 5 %: independent neighbours correlate by -1/n, with a standard error of 1/sqrt(n).
	const z = 1.644854
	m := float64(n)
	if falls || neighbours/own < -1/m-z/math.Sqrt(m) {
		own = max(0, own+2*neighbours)
	}
	// The Theil-Sen slope of a walk has 6/5 of the variance of the slope between its ends.
	half := studentQuantile(m-1) * math.Sqrt(1.2*own/(m-1)/length)
	if !math.IsInf(least, 1) {
		half = math.Hypot(half, least/length)
	}
	if s.Value <= 0 {
		s.Low, s.High = min(s.Low, s.Value-half), max(s.High, s.Value+half)
		return s
	}
	// Use factors, since growth that was observed has no rate of zero. If the half width exceeds the rate, the upper
	// end grows linearly: a factor would turn kilobytes into gigabytes.
	const most = 1e6 // largest factor; larger ones overflow, and mean the same
	part := half / s.Value
	factor := min(math.Exp(part), most)
	s.Low, s.High = min(s.Low, s.Value/factor), max(s.High, s.Value*min(factor, math.E/2*(1+part)))
	return s
}

// studentQuantile is the 97.5 % quantile of Student's t with nu >= 2 degrees of freedom, to 3 % (Abramowitz and
// Stegun 26.7.5).
func studentQuantile(nu float64) float64 {
	const z = 1.959964
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	return z + (z3+z)/4/nu + (5*z5+16*z3+3*z)/96/(nu*nu) + (3*z7+19*z5+17*z3-15*z)/384/(nu*nu*nu)
}
