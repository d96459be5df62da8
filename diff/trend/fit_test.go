package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestLeastSquaresFindsWhatMadeTheNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	within, all := 0, 0
	for range 200 {
		var x [][]float64
		var y []float64
		truth := func(row []float64) float64 { return 3e9*row[0] + 2e8*row[1] + 1.5e6*row[2] }
		for range 12 {
			batch, length := float64(1+r.IntN(64)), float64(64*(1+r.IntN(32)))
			x = append(x, []float64{1, batch, batch * length})
			y = append(y, truth(x[len(x)-1])+1e7*r.NormFloat64())
		}
		f, ok := LeastSquares(x, y)
		if !ok || math.Abs(f.Coefficients[2]/1.5e6-1) > 0.02 || f.Off > 1e8 {
			t.Fatalf("%+v, %v", f, ok)
		}
		next := []float64{1, 128, 128 * 2048}
		value, off := f.At(next)
		all++
		if math.Abs(value-truth(next)) < off {
			within++
		}
	}
	if within < all*92/100 { // 95 % of them, give or take
		t.Errorf("%d of %d predictions within their bounds", within, all)
	}
}

func TestLeastSquaresRefusesWhatHasNoAnswer(t *testing.T) {
	for name, x := range map[string][][]float64{
		"no observations": nil,
		"too few":         {{1, 2}, {1, 3}, {1, 4}},
		"one size":        {{1, 2}, {1, 2}, {1, 2}, {1, 2}},
		"columns alike":   {{1, 2, 4}, {1, 3, 6}, {1, 4, 8}, {1, 5, 10}, {1, 6, 12}},
		"a column of 0":   {{1, 0}, {1, 0}, {1, 0}, {1, 0}},
	} {
		if f, ok := LeastSquares(x, make([]float64, len(x))); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
