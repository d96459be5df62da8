package trend

import (
	"math"
	"testing"
)

// The expected values are those of scipy.stats.t.sf, SciPy 1.17.
func TestStudentTailAgreesWithSciPy(t *testing.T) {
	for _, c := range []struct{ t, nu, want float64 }{
		{0, 5, 0.5}, {1, 1, 0.25}, {2.5, 18, 0.011154010116011116}, {5.4, 18, 1.9694515835718522e-05},
		{0.1, 3, 0.46332617440040297}, {12, 4, 0.0001382142742514865}, {40, 19, 4.153878599669217e-20},
	} {
		if got := StudentTail(c.t, c.nu); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("t = %v, nu = %v: got %v, want %v", c.t, c.nu, got, c.want)
		}
	}
}

// The first two are of scipy.stats.ttest_1samp on numpy.diff, one-sided; the third
// with its variance times (1+r)/(1-r) for the increments' first autocorrelation.
func TestDriftAgreesWithSciPy(t *testing.T) {
	for _, c := range []struct {
		name string
		y    []float64
		want float64
	}{
		{"a rising series", []float64{10, 12, 12, 15, 13, 18, 17, 22, 21, 21, 26, 24, 30, 29, 28, 35}, 0.03162536342774645},
		{"noise", []float64{5, 4, 9, 3, 7, 7, 2, 8}, 0.41038984628601394},
		{"increments that come in runs", []float64{0, 1, 3, 6, 8, 9, 9, 10, 12, 15, 19, 22}, 0.007550046095127437},
		{"a line is no chance", []float64{0, 2, 4, 6, 8}, 0},
		{"a fall is", []float64{8, 6, 4, 2}, 1},
		{"three points are too few", []float64{0, 1, 2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Drift(c.y); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The expected value is that of numpy.linalg.lstsq, through the origin, of the increments
// on the intervals, both divided by the root of the interval, with scipy.stats.t.sf.
func TestDriftAlongUnevenPointsAgreesWithSciPy(t *testing.T) {
	x, y := []float64{0, 1, 2, 4, 7, 8, 20, 50}, []float64{3, 4, 3.5, 6, 9, 10, 25, 52}
	if got, want := DriftAlong(x, y), 4.653055908128807e-05; math.Abs(got-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClimbsTellsWhatNeverFalls(t *testing.T) {
	for _, c := range []struct {
		name string
		y    []float64
		want bool
	}{
		{"a line", []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, true},
		{"stairs", []float64{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}, true},
		{"too few stairs", []float64{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}, false},
		{"stairs that end", []float64{0, 1, 2, 3, 4, 5, 5, 5, 5, 5}, false},
		{"one fall", []float64{0, 1, 2, 3, 4, 3, 6, 7, 8, 9}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
			if got := Climbs(x, c.y, 4, 0.35); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
