package autodiff_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

func TestBackwardErrors(t *testing.T) {
	cases := []struct {
		name string
		want string
		body func(o *autodiff.Ops, x *engine.Tensor) error
	}{
		{"a second backward says that the graph is spent", "sum was gone through before", func(o *autodiff.Ops, x *engine.Tensor) error {
			loss := o.Sum(o.Exp(x))
			if err := o.Backward(loss); err != nil {
				return err
			}
			return o.Backward(loss)
		}},
		{"a loss over a spent part says so", "exp was gone through before", func(o *autodiff.Ops, x *engine.Tensor) error {
			y := o.Exp(x)
			if err := o.Backward(o.Sum(y)); err != nil {
				return err
			}
			return o.Backward(o.Sum(o.Neg(y)))
		}},
		{"a loss without history", "depends on no tracked tensor", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Detach(x)))
		}},
		{"a loss computed with valid", "depends on no tracked tensor", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Valid().Sum(x))
		}},
		{"a loss of several numbers", "the loss has the shape [3]", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Exp(x))
		}},
		{"tracking a result", "is the result of exp; Detach it first", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Track(o.Exp(x))
			return nil
		}},
		{"writing to a tracked tensor", "update parameters with Valid().Assign", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Assign(x, o.Full(1, 3))
			return nil
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, _ := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				x := o.Full(1, 3)
				o.Track(x)
				return c.body(o, x)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if o.Nodes() != 0 {
				t.Errorf("%d nodes are left", o.Nodes())
			}
		})
	}
}

func TestGradientsAddUpUntilTheyAreZeroed(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 3)
	o.Track(x)
	for i := range 3 {
		run(t, o, func() error { return o.Backward(o.Sum(o.Mul(x, x))) })
		want := float32(4 * (i + 1))
		if diff := cmp.Diff([]float32{want, want, want}, o.Floats(autodiff.Grad(x))); diff != "" {
			t.Error(diff)
		}
		if got := enginetest.Live(d); got != 2 {
			t.Errorf("%d blocks are live, want the leaf and its gradient", got)
		}
	}
	autodiff.ZeroGrad(x)
	if got := enginetest.Live(d); got != 1 || autodiff.Grad(x) != nil {
		t.Errorf("%d blocks are live after ZeroGrad, want the leaf", got)
	}
	x.Release()
}

func TestGradientsOfLeavesNeverShareABlock(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(inner)
	a, b := o.Full(1, 4), o.Full(2, 4)
	o.Track(a, b)
	run(t, o, func() error { return o.Backward(o.Sum(o.Add(a, b))) })
	ga, gb := autodiff.Grad(a), autodiff.Grad(b)
	if ga.Storage() == gb.Storage() {
		t.Error("two leaves share one gradient")
	}
	for _, g := range []*engine.Tensor{ga, gb} {
		if got := g.Storage().Requested(); got != 16 || g.Storage().Owners() != snapshot.OwnedByGrad {
			t.Errorf("a gradient of 16 bytes holds a block of %d, owned by %v", got, g.Storage().Owners().Names())
		}
	}
	a.Release()
	b.Release()
}

func TestTheTapeOwnsWhatItSavedUntilItsTurn(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(1, 4)
	o.Track(x)
	run(t, o, func() error {
		y := o.Exp(x)
		loss := o.Sum(y)
		if got := y.Storage().Owners(); got != snapshot.OwnedByUser|snapshot.OwnedByTape {
			t.Errorf("before backward %v", got.Names())
		}
		if err := o.Backward(loss); err != nil {
			return err
		}
		if got := y.Storage().Owners(); got != snapshot.OwnedByUser {
			t.Errorf("after backward %v", got.Names())
		}
		return nil
	})
	x.Release()
}

func TestDroppingAnOutputDropsItsChain(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(0.5, 64)
	o.Track(x)
	const links = 20_000 // deeper than recursion would like
	y := x.Retain()
	for range links {
		next := o.Tanh(y)
		y.Release()
		y = next
	}
	if got := enginetest.Live(d); got != links+1 {
		t.Errorf("%d blocks are live, want the leaf and %d saved results", got, links)
	}
	if got := o.Nodes(); got != links+1 {
		t.Errorf("%d nodes, want %d", got, links+1)
	}
	y.Release()
	if got := enginetest.Live(d); got != 1 {
		t.Errorf("%d blocks are live after the output went, want the leaf", got)
	}
	x.Release()
	if got := o.Nodes(); got != 0 {
		t.Errorf("%d nodes are left", got)
	}
}

func TestAPanicInBackwardLeavesNothingButTheLeaves(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 8 * snapshot.MiB})
	o := autodiff.New(engine.NewEager(cpu.New(1), d))
	x := o.Full(0.5, 100_000)
	o.Track(x)
	var hogs []*engine.Tensor
	err := engine.Run(o, func(*engine.Scope) error {
		loss := o.Sum(o.Mul(x, o.Tanh(x)))
		for engine.Run(o, func(s *engine.Scope) error {
			hogs = append(hogs, s.Keep(o.Full(0, 10_000)))
			return nil
		}) == nil {
		}
		return o.Backward(loss)
	})
	for _, t := range hogs {
		t.Release()
	}
	var full *mem.OutOfMemoryError
	if !errors.As(err, &full) {
		t.Fatalf("got %v, want an out-of-memory error", err)
	}
	if got := enginetest.Live(d); got != 1 {
		t.Errorf("%d blocks are live, want the leaf", got)
	}
	if o.Nodes() != 1 {
		t.Errorf("%d nodes are left, want the leaf", o.Nodes())
	}
	if parent := d.SetParent(mem.NoSite); parent != mem.NoSite {
		t.Errorf("the parent site is still %v", parent)
	}
	x.Release()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestBlocksOfBackwardCarryTheForwardSite(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x, w := o.Full(1, 2, 4), o.Full(1, 4, 3)
	o.Track(x, w)
	run(t, o, func() error {
		loss := o.Sum(product(o, x, w))
		if err := o.Backward(loss); err != nil {
			return err
		}
		// A snapshot, as a user sees it: both gradients are backward of the product.
		s := mem.Take(snapshot.Mark{}, d)
		for i, owners := range s.Blocks.Owners {
			if owners != snapshot.OwnedByGrad {
				continue
			}
			var names []string
			for _, f := range s.Stacks.Frames(s.Blocks.Stack[i]) {
				names = append(names, f.Function)
			}
			stack := strings.Join(names, " < ")
			if _, forward, ok := strings.Cut(stack, " < backward of < "); !ok || !strings.HasPrefix(forward, "autodiff.(*Ops).MatMul < autodiff_test.product < ") {
				t.Errorf("a gradient's stack does not name the forward call: %s", stack)
			}
			if got := mem.Headline(s.Stacks.Frames(s.Blocks.Stack[i])); !strings.HasPrefix(got, "backward of autodiff_test.product (engine/autodiff/autodiff_test.go:") {
				t.Errorf("the headline is %q", got)
			}
		}
		if got := enginetest.Owners(d)[snapshot.OwnedByGrad]; got != 2 {
			t.Errorf("%d gradients are in the snapshot, want 2", got)
		}
		return nil
	})
	x.Release()
	w.Release()
}

//go:noinline
func product(o engine.Ops, x, w *engine.Tensor) *engine.Tensor { return o.MatMul(x, w) }

// TestAHandleThatIsCollectedProvesItsBlocksLost, and what its graph had saved.
func TestAHandleThatIsCollectedProvesItsBlocksLost(t *testing.T) {
	inner, d := newLeakyEager(t)
	o := autodiff.New(inner)
	x := o.Full(1, 256)
	o.Track(x)
	if err := engine.Run(o, func(*engine.Scope) error {
		forget(o, x)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 50 { // cleanups run after a collection, in their own time
		runtime.GC()
		if lost := d.Lost(); len(lost) == 2 {
			for i, want := range []string{"autodiff.(*Ops).Exp", "autodiff.(*Ops).Tanh"} {
				stack := lost[i].Stack
				if lost[i].Blocks != 1 || lost[i].Bytes != 1024 || stack[0].Function != want || stack[1].Function != "autodiff_test.forget" {
					t.Errorf("lost %+v, want 1024 bytes of %s in forget", lost[i], want)
				}
			}
			if !x.Storage().Alive() || o.Nodes() != 3 {
				t.Errorf("the leaf is alive: %v; %d nodes, want 3", x.Storage().Alive(), o.Nodes())
			}
			runtime.KeepAlive(x)
			return
		}
		runtime.Gosched()
	}
	t.Errorf("lost %+v, want the kept result and what its graph saved", d.Lost())
}

// forget keeps a result of two operations and loses the handle.
//
//go:noinline
func forget(o engine.Ops, x *engine.Tensor) { o.Tanh(o.Exp(x)).Keep() }

func TestDecoratorsStack(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(autodiff.New(inner))
	x := o.Full(3, 2)
	o.Track(x)
	run(t, o, func() error { return o.Backward(o.Sum(o.Mul(x, x))) })
	if diff := cmp.Diff([]float32{6, 6}, o.Floats(autodiff.Grad(x))); diff != "" {
		t.Error(diff)
	}
	x.Release()
}

// TestAFunctionThatHoldsItsOwnResultIsACycle: references never come to nothing, and
// the collector, which sees cycles, proves the blocks lost.
func TestAFunctionThatHoldsItsOwnResultIsACycle(t *testing.T) {
	inner, d := newLeakyEager(t)
	o := autodiff.New(inner)
	x := o.Full(1, 256)
	o.Track(x)
	resultOnItself(o, x)
	left(t, o, d, 2, 2)
	for range 50 {
		runtime.GC()
		if lost := d.Lost(); len(lost) > 0 {
			if len(lost) != 1 || lost[0].Stack[0].Function != "engine.(*Eager).Exp" {
				t.Errorf("lost %+v, want the block of Exp", lost)
			}
			runtime.KeepAlive(x)
			return
		}
		runtime.Gosched()
	}
	t.Error("the cycle was not noticed")
}

//go:noinline
func resultOnItself(o *autodiff.Ops, x *engine.Tensor) {
	f := &keeper{}
	y := o.Apply(f, x)
	f.kept = y.Retain()
	y.Release()
}

// newLeakyEager is enginetest.NewEager for what ends with blocks that are live on
// purpose.
func newLeakyEager(t *testing.T) (*engine.Eager, *mem.Device) {
	d := mem.NewDevice(mem.Host(), mem.Options{})
	t.Cleanup(func() { _ = d.Close() })
	return engine.NewEager(cpu.New(1), d), d
}
