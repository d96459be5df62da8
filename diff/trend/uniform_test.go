package trend

import (
	"math"
	"testing"
)

// TestUniformAgreesWithSciPy: the distances are those of scipy.stats.kstest(x,
// "uniform"), SciPy 1.17.1, the p values its exact ones, and the tail that of
// scipy.stats.kstwobign.sf.
func TestUniformAgreesWithSciPy(t *testing.T) {
	for _, c := range []struct {
		events []float64
		d, p   float64
	}{
		{[]float64{.05, .15, .25, .35, .45, .55, .65, .75, .85, .95}, 0.05, 1},
		{[]float64{.01, .02, .03, .05, .08, .2, .5, .9}, 0.55, 0.008435341748046866},
		{[]float64{.8, .81, .83, .9, .95, .97, .99}, 0.8, 2.5989932766109318e-05},
		{[]float64{.1, .2, .35, .38, .6, .61, .62, .9, .92, .95, .97, .99}, 0.31666666666666665, 0.14382901484660637},
		{[]float64{.3, .5, .55, .57, .6, .62, .64, .65, .7, .9}, 0.4, 0.05898924519999926},
	} {
		scaled := make([]float64, len(c.events))
		for i, e := range c.events {
			scaled[len(scaled)-1-i] = 50 + 200*e
		}
		d, p := Uniform(scaled, 50, 250)
		if math.Abs(d-c.d) > 1e-9 || math.Abs(p-c.p) > 0.005 {
			t.Errorf("%v: d %.4f, p %.5f; SciPy has %.4f and %.5f", c.events, d, p, c.d, c.p)
		}
	}
	for x, want := range map[float64]float64{0.5: 0.9639452436648751, 1: 0.26999967167735456, 1.36: 0.049485876755377876, 1.63: 0.009846364888486529, 2: 0.0006709252557796953} {
		if got := kolmogorov(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("the tail at %g is %g, SciPy has %g", x, got, want)
		}
	}
}

func TestUniformOfNothing(t *testing.T) {
	for name, c := range map[string]struct {
		events    []float64
		low, high float64
	}{
		"no events":           {nil, 0, 1},
		"no stretch":          {[]float64{1}, 1, 1},
		"a stretch backwards": {[]float64{1}, 2, 1},
	} {
		if d, p := Uniform(c.events, c.low, c.high); d != 1 || p != 0 {
			t.Errorf("%s: d %g, p %g", name, d, p)
		}
	}
}
