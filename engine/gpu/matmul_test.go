package gpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/engine"
)

// TestTiledProductsAreThoseOfTheOtherShader, which the suite holds against the
// reference on a software driver: there nothing else would run the tiles.
func TestTiledProductsAreThoseOfTheOtherShader(t *testing.T) {
	d := open(t)
	byTiles, directly := New(d).(*kernels), New(d).(*kernels)
	byTiles.product, directly.product = tiled(), direct()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 { // a software driver takes half a second for each
		batch, m, terms, n := 1+rng.IntN(2), 1+rng.IntN(80), 1+rng.IntN(20), 1+rng.IntN(80)
		a, b := tensor(t, d, batch, m, terms), tensor(t, d, batch, terms, n)
		if rng.IntN(2) == 0 { // a transpose
			a = tensor(t, d, batch, terms, m)
			a.Shape, a.Strides = engine.ShapeOf(batch, m, terms), engine.Strides{m * terms, 1, m}
		}
		if rng.IntN(2) == 0 {
			b.Strides[0] = 0
		}
		for _, v := range []engine.View{a, b} {
			v.Shape = engine.ShapeOf(v.Shape.Elements())
			v.Strides = v.Shape.RowMajor()
			directly.Rand(v, engine.Draw{Key: rng.Uint64()})
		}
		got, want := tensor(t, d, batch, m, n), tensor(t, d, batch, m, n)
		byTiles.MatMul(got, a, b)
		directly.MatMul(want, a, b)
		g, w := floats(byTiles, got), floats(directly, want)
		for i := range w {
			if math.Abs(float64(g[i]-w[i])) > tolerance*max(1, math.Abs(float64(w[i]))) {
				t.Fatalf("[%d %d %d] by [%d %d %d]: element %d is %g by tiles, %g directly", batch, m, terms, batch, terms, n, i, g[i], w[i])
			}
		}
	}
	if err := byTiles.Sync(); err != nil {
		t.Error(err)
	}
}

// TestAProductOfMoreGroupsThanADeviceRunsIsCut, along each axis.
func TestAProductOfMoreGroupsThanADeviceRunsIsCut(t *testing.T) {
	d := open(t)
	k := New(d).(*kernels)
	for _, c := range []struct {
		name     string
		batch, m int
		n        int
	}{
		{"rows", 1, maxGroups*k.product.rows + 1, 1},
		{"columns", 1, 2, maxGroups*k.product.columns + 1},
		{"a batch", maxGroups + 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, got := tensor(t, d, c.batch, c.m, 1), tensor(t, d, c.batch, 1, c.n), tensor(t, d, c.batch, c.m, c.n)
			for i, v := range []engine.View{a, b} {
				v.Shape = engine.ShapeOf(v.Shape.Elements())
				v.Strides = v.Shape.RowMajor()
				k.Rand(v, engine.Draw{Key: uint64(i)})
			}
			k.MatMul(got, a, b)
			if err := k.Sync(); err != nil {
				t.Fatal(err)
			}
			left, right := floats(k, a), floats(k, b)
			for i, g := range floats(k, got) {
				batch, row, column := i/(c.m*c.n), i/c.n%c.m, i%c.n
				if w := left[batch*c.m+row] * right[batch*c.n+column]; g != w {
					t.Fatalf("[%d %d %d] is %g, want %g", batch, row, column, g, w)
				}
			}
		})
	}
}
