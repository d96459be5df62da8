package cast_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/cast"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/snapshot"
)

func TestRoundingLeavesElevenBitsAndIsTheNearest(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	rapid.Check(t, func(r *rapid.T) {
		x := rapid.Float32Range(-1e30, 1e30).Draw(r, "x")
		if x != 0 && math.Abs(float64(x)) < 1e-30 {
			r.Skip("subnormal on the way")
		}
		defer o.Begin().End()
		got := o.Floats(cast.Round(o, o.FromFloats([]float32{x}, 1)))[0]
		if low := math.Float32bits(got) & (1<<13 - 1); low != 0 {
			r.Fatalf("%g becomes %g, of more than 11 bits", x, got)
		}
		_, exponent := math.Frexp(float64(x))
		if off := math.Abs(float64(got) - float64(x)); off > math.Ldexp(1, exponent-12) {
			r.Fatalf("%g becomes %g, which is not the nearest", x, got)
		}
	})
	defer o.Begin().End()
	for _, c := range []struct {
		name string
		x, y float32
	}{
		{"a number of 11 bits stays", 2047, 2047},
		{"one of 12 goes to the nearest of 11", 4097 + 2, 4100},
		{"a third is what float16 makes of it", 1.0 / 3, 0x1.554p-2},
		{"nothing stays nothing", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := o.Floats(cast.Round(o, o.FromFloats([]float32{c.x}, 1)))[0]; got != c.y {
				t.Errorf("%g becomes %g, want %g", c.x, got, c.y)
			}
		})
	}
}

func TestProductsSeeRoundedOperandsAndGradientsPass(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(inner)
	defer o.Begin().End()
	const third = float32(1.0 / 3)
	rounded := o.Floats(cast.Round(o, o.FromFloats([]float32{third}, 1)))[0]
	w, x := o.Full(third, 1, 1), o.Full(third, 1, 1)
	o.Track(w, x)
	c := cast.Open(o, []*engine.Tensor{w})
	defer c.Close()
	y := c.MatMul(x, w)
	if got := c.Floats(y)[0]; got != rounded*rounded || got == third*third {
		t.Errorf("the product is %g, want %g", got, rounded*rounded)
	}
	if err := o.Backward(c.Sum(y)); err != nil {
		t.Fatal(err)
	}
	for name, leaf := range map[string]*engine.Tensor{"parameter": w, "input": x} {
		if got := o.Floats(autodiff.Grad(leaf))[0]; got != rounded {
			t.Errorf("the gradient of the %s is %g, want %g", name, got, rounded)
		}
	}
	if got := c.Floats(c.Add(w, x))[0]; got != third+third {
		t.Errorf("a sum was rounded to %g", got)
	}
	image, filters := c.Full(third, 1, 1, 2, 2), c.Full(third, 1, 1, 1, 1)
	if got := c.Floats(c.Conv2d(image, filters, engine.Square(1, 1, 0))); !slices.Equal(got, slices.Repeat([]float32{rounded * rounded}, 4)) {
		t.Errorf("the correlation is %v", got)
	}
}

func TestCopiesOfParametersLastAsLongAsTheContext(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	w := o.Full(1.0/3, 4, 4)
	defer w.Release()
	o.Track(w)
	state := func(want map[snapshot.Owners]int) {
		t.Helper()
		if diff := cmp.Diff(want, enginetest.Owners(d)); diff != "" {
			t.Error(diff)
		}
	}
	c := cast.Open(o, []*engine.Tensor{w})
	for pass := range 3 {
		err := engine.Run(c, func(*engine.Scope) error {
			c.MatMul(c.MatMul(c.Full(1, 4, 4), w), w)
			return nil
		})
		if err != nil || c.Cached() != 1 {
			t.Fatalf("pass %d: %d copies, %v", pass, c.Cached(), err)
		}
		state(map[snapshot.Owners]int{snapshot.OwnedByUser: 1, snapshot.OwnedByCache: 1})
	}
	c.Close()
	c.Close()
	state(map[snapshot.Owners]int{snapshot.OwnedByUser: 1})
	if c.Cached() != 0 || o.Nodes() != 1 {
		t.Errorf("%d copies, %d nodes after Close; want the leaf only", c.Cached(), o.Nodes())
	}

	// A graph outlives the context, and a context that is closed has no cache.
	scope := o.Begin()
	c = cast.Open(o, []*engine.Tensor{w})
	loss := c.Sum(c.MatMul(c.Full(1, 4, 4), w))
	c.Close()
	if err := o.Backward(loss); err != nil {
		t.Error(err)
	}
	c.MatMul(w, w)
	if c.Cached() != 0 {
		t.Error("a closed context keeps a copy")
	}
	scope.End()
	autodiff.ZeroGrad(w)
	state(map[snapshot.Owners]int{snapshot.OwnedByUser: 1})
}

func TestASecondBackwardInOneContextSaysSo(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(inner)
	defer o.Begin().End()
	w := o.Full(1, 2, 2)
	o.Track(w)
	c := cast.Open(o, []*engine.Tensor{w})
	defer c.Close()
	if err := o.Backward(c.Sum(c.MatMul(c.Full(1, 2, 2), w))); err != nil {
		t.Fatal(err)
	}
	if err := o.Backward(c.Sum(c.MatMul(c.Full(1, 2, 2), w))); err == nil || !strings.Contains(err.Error(), "backward:") {
		t.Errorf("got %v", err)
	}
}

// A copy that was made where nothing is recorded once served the pass that trains,
// and the gradient of the parameter was gone without a word.
func TestNoCopyCutsAParameterOffFromItsGradient(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor)
	}{
		{"a product in NoGrad came first", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			o.NoGrad(func() { c.MatMul(x, w) })
		}},
		{"a product in NoGrad came first, under a decorator that tells nothing", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			c.Ops = struct{ engine.Ops }{o}
			o.NoGrad(func() { c.MatMul(x, w) })
		}},
		{"a product in NoGrad came first, in a context around another", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			c.Ops = cast.Open(o, nil)
			o.NoGrad(func() { c.MatMul(x, w) })
		}},
		{"a correlation in NoGrad came first", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			o.NoGrad(func() { c.Conv2d(x, w, engine.Square(1, 1, 0)) })
		}},
		{"a pass in NoGrad came between", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			c.MatMul(x, w)
			o.NoGrad(func() { c.MatMul(x, w) })
		}},
		{"the parameter was plain at first", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			o.Untrack(w)
			c.MatMul(x, w)
			o.Track(w)
		}},
		{"the parameter was tracked anew", func(o *autodiff.Ops, c *cast.Ops, x, w *engine.Tensor) {
			c.MatMul(x, w)
			o.Untrack(w)
			o.Track(w)
		}},
	} {
		for tape, newOps := range map[string]func(engine.Ops) *autodiff.Ops{
			"graph":    autodiff.New,
			"registry": func(inner engine.Ops) *autodiff.Ops { return autodiff.NewOn(inner, registry.New(registry.Options{})) },
		} {
			t.Run(c.name+", on the tape "+tape, func(t *testing.T) {
				inner, d := enginetest.NewEager(t)
				o := newOps(inner)
				err := engine.Run(o, func(*engine.Scope) error {
					x, w := o.Full(3, 1, 1, 1, 1), o.Full(2, 1, 1, 1, 1) // rows and columns, or image and filter
					o.Track(w)
					low := cast.Open(o, []*engine.Tensor{w})
					defer low.Close()
					c.before(o, low, x, w)
					if err := o.Backward(low.Sum(low.MatMul(x, w))); err != nil {
						return err
					}
					if g := autodiff.Grad(w); g == nil || o.Floats(g)[0] != 3 {
						t.Errorf("the gradient is %v, want 3", g)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				err = engine.Run(o, func(*engine.Scope) error { // a registry sweeps after the next Backward
					y := o.Full(1)
					o.Track(y)
					return o.Backward(y)
				})
				if n := enginetest.Live(d); err != nil || n != 0 {
					t.Errorf("%d blocks are left; %v", n, err)
				}
			})
		}
	}
}

func TestAPassWithoutRecordHasACacheOfItsOwn(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	w := o.Full(1.0/3, 4, 4)
	defer w.Release()
	o.Track(w)
	plain := func(c *cast.Ops) {
		t.Helper()
		scope := o.Begin()
		o.NoGrad(func() { c.MatMul(c.MatMul(c.Full(1, 4, 4), w), w) })
		scope.End()
		if n := enginetest.Owners(d)[snapshot.OwnedByCache]; n != 1 || c.Cached() != 1 {
			t.Errorf("%d blocks and %d copies are in the cache, want one", n, c.Cached())
		}
	}
	for _, ops := range []engine.Ops{o, o.Valid()} {
		c := cast.Open(ops, []*engine.Tensor{w})
		plain(c)
		plain(c)
		scope := o.Begin()
		c.MatMul(c.Full(1, 4, 4), w) // recorded, if it is not Valid
		scope.End()
		plain(c)
		c.Close()
		if n := enginetest.Live(d); n != 1 {
			t.Errorf("%d blocks are left, want the parameter's", n)
		}
	}
}

// A cached copy once made the second run of a checkpoint another than the first.
func TestAContextMayBeClosedBeforeACheckpointRunsAgain(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	const third = float32(1.0 / 3)
	w, x := o.Full(third, 2, 2), o.Full(third, 2, 2)
	o.Track(w, x)
	twice := func(c *cast.Ops) func(...*engine.Tensor) *engine.Tensor {
		return func(in ...*engine.Tensor) *engine.Tensor { return c.MatMul(c.MatMul(in[0], w), w) }
	}
	gradients := func(checkpointed, cached bool) (all [][]float32) {
		if err := engine.Run(o, func(*engine.Scope) error {
			c := cast.Open(o, []*engine.Tensor{w})
			if cached { // by a product outside
				c.MatMul(x, w)
			}
			y := twice(c)(x)
			if checkpointed {
				y = o.Checkpoint(twice(c), x)
			}
			loss := c.Sum(y)
			c.Close()
			return o.Backward(loss)
		}); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range []*engine.Tensor{w, x} {
			all = append(all, o.Floats(autodiff.Grad(leaf)))
		}
		autodiff.ZeroGrad(w, x)
		return all
	}
	want := gradients(false, false)
	for _, cached := range []bool{false, true} {
		if diff := cmp.Diff(want, gradients(true, cached)); diff != "" {
			t.Errorf("with the copy made before the checkpoint: %v, gradients differ: %s", cached, diff)
		}
	}
	w.Release()
	x.Release()
	if n := enginetest.Live(d); n != 0 || o.Nodes() != 0 {
		t.Errorf("%d blocks and %d nodes are left", n, o.Nodes())
	}
}
