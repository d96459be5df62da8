package trend

import (
	"math"
	"testing"
)

// The expected values are those of pymannkendall 1.4.3 (original_test and
// hamed_rao_modification_test).
func TestMannKendallAgreesWithPymannkendall(t *testing.T) {
	for _, c := range []struct {
		name    string
		y       []float64
		mk, rao Test
	}{
		{"a rising series with ties", []float64{10, 12, 12, 15, 13, 18, 17, 22, 21, 21, 26, 24, 30, 29, 28, 35}, Test{S: 102.0, Z: 4.556519774554074, P: 5.200814493067085e-06, N: 16}, Test{S: 102.0, Z: 18.656293209057864, P: 0.0, N: 16}},
		{"noise", []float64{5, 4, 9, 3, 7, 7, 2, 8}, Test{S: 1.0, Z: 0.0, P: 1.0, N: 8}, Test{S: 1.0, Z: 0.0, P: 1.0, N: 8}},
		{"a drifting, correlated series", []float64{-2.0, -2.4, -4.7, -1.5, -0.9, -0.3, -1.9, -4.0, -5.8, -7.1, -5.1, -2.5, -2.3, 1.8, 5.2, 1.9, 0.3, 2.1, 3.6, 2.8, 2.2, 5.7, 3.6, 7.0}, Test{S: 153.0, Z: 3.7714296374668357, P: 0.00016231492901708222, N: 24}, Test{S: 153.0, Z: 2.8871920830576165, P: 0.0038869685459586023, N: 24}},
		{"a rising saw-tooth", []float64{0.463, 1.373, 2.139, 3.867, 4.006, 5.503, 1.898, 2.081, 3.554, 4.617, 5.041, 6.379, 2.703, 3.452, 4.725, 5.157, 6.238, 7.111, 3.506, 4.924, 5.59, 6.774, 7.384, 8.746, 4.102, 5.291, 6.674, 7.726, 8.422, 9.088}, Test{S: 273.0, Z: 4.852760432952429, P: 1.2175473664832737e-06, N: 30}, Test{S: 273.0, Z: 7.079406069052278, P: 1.4477308241112041e-12, N: 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []struct {
				rule      string
				got, want Test
			}{{"Mann-Kendall", MannKendall(c.y), c.mk}, {"Hamed-Rao", HamedRao(c.y), c.rao}} {
				if r.got.S != r.want.S || r.got.N != r.want.N || math.Abs(r.got.Z-r.want.Z) > 1e-6 || math.Abs(r.got.P-r.want.P) > 1e-6 {
					t.Errorf("%s: got %+v, want %+v", r.rule, r.got, r.want)
				}
			}
		})
	}
}

// TestNoSeriesIsLessLikelyThanAMonotoneOne: rises by turns large and small correlate
// negatively, which leaves next to no variance.
func TestNoSeriesIsLessLikelyThanAMonotoneOne(t *testing.T) {
	var y []float64
	for i := range 20 {
		y = append(y, float64(10*i+i%2*7))
	}
	const monotone = 2 / 2432902008176640000.0 // of 20! orders
	if got := HamedRao(y).P; got < monotone {
		t.Errorf("p = %.2g, but a monotone order of 20 has %.2g", got, monotone)
	}
}

func TestConstantSeriesHasNoTrend(t *testing.T) {
	for _, y := range [][]float64{nil, {1}, {3, 3, 3, 3, 3, 3}} {
		if MannKendall(y).P != 1 || HamedRao(y).P != 1 {
			t.Errorf("%v: %+v, %+v", y, MannKendall(y), HamedRao(y))
		}
	}
}

// The expected values are those of scipy.stats.false_discovery_control.
func TestBenjaminiHochbergAgreesWithSciPy(t *testing.T) {
	got := BenjaminiHochberg([]float64{0.01, 0.04, 0.03, 0.005, 0.5, 0.04})
	for i, want := range []float64{0.03, 0.048, 0.048, 0.03, 0.5, 0.048} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%d: got %v, want %v", i, got[i], want)
		}
	}
}
