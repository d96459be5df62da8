package trend

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The expected values are those of scipy.stats.theilslopes(y, x, 0.95), SciPy
// 1.17, which follows Sen (1968) too.
func TestTheilSenAgreesWithSciPy(t *testing.T) {
	for _, c := range []struct {
		name             string
		x, y             []float64
		value, low, high float64
	}{
		{
			"a rising series with ties and uneven steps",
			[]float64{0, 1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 14, 15, 17, 18, 20},
			[]float64{10, 12, 12, 15, 13, 18, 17, 22, 21, 21, 26, 24, 30, 29, 28, 35},
			1.1483516483516483, 1.0, 1.3333333333333333,
		},
		{
			"noise without a trend",
			[]float64{0, 1, 2, 3, 4, 5, 6, 7},
			[]float64{5, 4, 9, 3, 7, 7, 2, 8},
			0.16666666666666666, -1.0, 1.25,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := TheilSen(c.x, c.y)
			for _, v := range [][2]float64{{s.Value, c.value}, {s.Low, c.low}, {s.High, c.high}} {
				if math.Abs(v[0]-v[1]) > 1e-9 {
					t.Errorf("got %+v; want %v (%v to %v)", s, c.value, c.low, c.high)
				}
			}
		})
	}
}

func TestTheilSenIsTheLineUnderOutliers(t *testing.T) {
	x, y := make([]float64, 21), make([]float64, 21)
	for i := range x {
		x[i], y[i] = float64(i), 3*float64(i)+1
	}
	y[5], y[11] = 1000, -1000
	if s := TheilSen(x, y); math.Abs(s.Value-3) > 1e-9 || s.Low > 3 || s.High < 3 || s.N != 21 {
		t.Errorf("got %+v", s)
	}
}

func TestTheilSenOfOnePointIsZero(t *testing.T) {
	if s := TheilSen([]float64{1}, []float64{5}); s != (Slope{N: 1}) {
		t.Errorf("got %+v", s)
	}
}

func TestFloorsKeepTheSmallestOfEachWindow(t *testing.T) {
	x, y := Floors([]float64{0, 1, 2, 3, 4, 5}, []float64{9, 1, 7, 8, 2, 9}, 2)
	if d := cmp.Diff([][]float64{{1, 4}, {1, 2}}, [][]float64{x, y}); d != "" {
		t.Error(d)
	}
}

func TestLargestGapIsAShareOfTheStretch(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []float64
		want   float64
	}{
		{"no events leave one gap", nil, 1},
		{"events at both ends leave the middle", []float64{10, 0}, 1},
		{"even events leave small gaps", []float64{2, 4, 6, 8}, 0.2},
		{"events outside count at the ends", []float64{-5, 5, 50}, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := LargestGap(c.events, 0, 10); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The expected values are those of numpy.interp, NumPy 2.4.
func TestAtAgreesWithNumPy(t *testing.T) {
	x, y := []float64{0, 10, 30, 60}, []float64{5, 1, 9, 9}
	for at, want := range map[float64]float64{-5: 5, 0: 5, 4: 3.4, 20: 5, 30: 9, 31: 9, 99: 9} {
		if got := At(x, y, at); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %g: %v, want %v", at, got, want)
		}
	}
}
