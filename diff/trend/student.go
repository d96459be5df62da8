package trend

import "math"

// StudentTail is the chance that Student's t with nu degrees of freedom exceeds t,
// for t >= 0: half the regularized incomplete beta function of nu/(nu+t²) with
// nu/2 and 1/2.
func StudentTail(t, nu float64) float64 {
	return incompleteBeta(nu/2, 0.5, nu/(nu+t*t)) / 2
}

// incompleteBeta is the regularized incomplete beta function, by its continued
// fraction (DLMF 8.17.22) in the form of Lentz; to about 1e-14 of its value.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction would converge slowly
		return 1 - incompleteBeta(b, a, 1-x)
	}
	logGamma := func(v float64) float64 {
		l, _ := math.Lgamma(v)
		return l
	}
	front := math.Exp(logGamma(a+b)-logGamma(a)-logGamma(b)+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 300 {
		m := float64(i / 2)
		var term float64
		switch {
		case i == 0:
			term = 1
		case i%2 == 0:
			term = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			term = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		if d = 1 + term*d; math.Abs(d) < tiny {
			d = tiny
		}
		if c = 1 + term/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return front * (f - 1)
}
