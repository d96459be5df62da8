package trend

import "math"

// Rate is the slope of TheilSen for growth of which each event stays, with an interval that holds
// for events at random moments too. Points of such growth are no line with noise but a walk with a
// drift: what happened in one interval is in all points behind it, so that they lie close to a
// straight line whose slope is wrong, and the interval of Sen, for which they err each by itself,
// holds the truth in one of three. The variance of the walk is that of its increments by their
// length, less twice the covariance of neighbours where these differ so from each other, or where
// points fall, that noise is what they have in common (the long-run variance; Newey and West 1987,
// with one lag). An end of the walk may be early or late by one event, in any case.
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
	// One-sided, of 5 %: neighbours that are independent correlate by -1/n, give or take 1/sqrt(n).
	const z = 1.644854
	m := float64(n)
	if falls || neighbours/own < -1/m-z/math.Sqrt(m) {
		own = max(0, own+2*neighbours)
	}
	// A Theil-Sen slope of a walk has 6/5 of the variance that its ends have.
	half := studentQuantile(m-1) * math.Sqrt(1.2*own/(m-1)/length)
	if !math.IsInf(least, 1) {
		half = math.Hypot(half, least/length)
	}
	if s.Value <= 0 {
		s.Low, s.High = min(s.Low, s.Value-half), max(s.High, s.Value+half)
		return s
	}
	// By factors: what was seen to grow has no rate of zero. A half that is longer than the rate goes on in a straight line, since a factor would
	// make gigabytes of kilobytes.
	const most = 1e6 // of a factor that is as good as any; larger ones overflow
	part := half / s.Value
	factor := min(math.Exp(part), most)
	s.Low, s.High = min(s.Low, s.Value/factor), max(s.High, s.Value*min(factor, math.E/2*(1+part)))
	return s
}

// studentQuantile is that of 97.5 % of Student's t with nu >= 2 degrees of freedom, to 3 % (Abramowitz
// and Stegun 26.7.5).
func studentQuantile(nu float64) float64 {
	const z = 1.959964
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	return z + (z3+z)/4/nu + (5*z5+16*z3+3*z)/96/(nu*nu) + (3*z7+19*z5+17*z3-15*z)/384/(nu*nu*nu)
}
