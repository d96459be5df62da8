package autodiff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

func TestNoGradRecordsNothing(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 3)
	o.Track(x)
	run(t, o, func() error {
		var y *engine.Tensor
		o.NoGrad(func() {
			o.NoGrad(func() {})
			y = o.Mul(x, o.Exp(x))
			o.Assign(x, o.Full(3, 3))
		})
		if autodiff.Tracked(y) || o.Nodes() != 1 {
			t.Errorf("the result is tracked: %v; %d nodes, want the leaf", autodiff.Tracked(y), o.Nodes())
		}
		if !autodiff.Tracked(o.Neg(x)) {
			t.Error("after NoGrad nothing is recorded")
		}
		return nil
	})
	func() {
		defer func() { _ = recover() }()
		o.NoGrad(func() { panic("mine") })
	}()
	run(t, o, func() error { return o.Backward(o.Sum(x)) })
	x.Release()
	left(t, o, d, 0, 0)
}

func TestClearGradKeepsTheBlockThatGradientsAreAddedTo(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 3)
	o.Track(x)
	o.ClearGrad(x) // there is none yet
	var first *engine.Tensor
	for range 3 {
		for range 2 { // gathers over two passes
			run(t, o, func() error { return o.Backward(o.Sum(o.Mul(x, x))) })
		}
		g := autodiff.Grad(x)
		if first == nil {
			first = g
		}
		if diff := cmp.Diff([]float32{8, 8, 8}, o.Floats(g)); diff != "" || g != first {
			t.Errorf("the same handle: %v; %s", g == first, diff)
		}
		o.ClearGrad(x)
		if diff := cmp.Diff([]float32{0, 0, 0}, o.Floats(first)); diff != "" {
			t.Error(diff)
		}
	}
	x.Release()
	left(t, o, d, 0, 0)
}

func TestAKeptGraphCanBeGoneThroughAgain(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(0.5, 4)
	o.Track(x)
	run(t, o, func() error {
		loss := o.Sum(o.Exp(o.Mul(x, x)))
		live, nodes := enginetest.Live(d), o.Nodes()
		for i := range 3 {
			if err := o.BackwardWith(loss, autodiff.BackwardOptions{KeepGraph: true}); err != nil {
				return err
			}
			if gotLive, gotNodes := enginetest.Live(d), o.Nodes(); gotLive != live+1 || gotNodes != nodes {
				t.Errorf("after pass %d %d blocks and %d nodes, want the gradient beside %d and %d", i, gotLive, gotNodes, live, nodes)
			}
		}
		return o.Backward(loss)
	})
	four := o.Floats(autodiff.Grad(x))
	autodiff.ZeroGrad(x)
	run(t, o, func() error { return o.Backward(o.Sum(o.Exp(o.Mul(x, x)))) })
	for i, one := range o.Floats(autodiff.Grad(x)) {
		if four[i] != 4*one {
			t.Errorf("four passes gave %g, one %g", four[i], one)
		}
	}
	x.Release()
	left(t, o, d, 0, 0)
}

func TestRecordedAndPlainPassesAddUp(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	create := autodiff.BackwardOptions{CreateGraph: true}
	for name, passes := range map[string][]autodiff.BackwardOptions{
		"a recorded pass after a plain one":    {{}, create},
		"a recorded pass after a recorded one": {create, create},
		"a plain pass after a recorded one":    {create, {}},
	} {
		x := o.Full(2, 3)
		o.Track(x)
		run(t, o, func() error {
			for _, options := range passes { // x³ each, with the derivatives 3x² and 6x
				if err := o.BackwardWith(o.Sum(o.Mul(x, o.Mul(x, x))), options); err != nil {
					return err
				}
			}
			if diff := cmp.Diff([]float32{24, 24, 24}, o.Floats(autodiff.Grad(x))); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			want := float32(0)
			for _, options := range passes {
				if options == create {
					want += 12
				}
			}
			first := autodiff.Grad(x).Retain()
			defer first.Release()
			autodiff.ZeroGrad(x)
			if passes[1] != create { // a plain pass has made a plain sum
				if autodiff.Tracked(first) {
					t.Errorf("%s: the sum is tracked", name)
				}
				return nil
			}
			if err := o.Backward(o.Sum(first)); err != nil {
				return err
			}
			if diff := cmp.Diff([]float32{want, want, want}, o.Floats(autodiff.Grad(x))); diff != "" {
				t.Errorf("%s, of second order: %s", name, diff)
			}
			return nil
		})
		x.Release()
		left(t, o, d, 0, 0)
	}
}

func TestALeafMayComeFromAnotherDecoratorThatIsAhead(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	ahead, o := autodiff.New(inner), autodiff.New(inner)
	run(t, o, func() error {
		for range 10 {
			ahead.Track(ahead.Full(1))
		}
		x := ahead.Full(3, 2)
		ahead.Track(x)
		if err := o.Backward(o.Sum(o.Mul(x, x))); err != nil {
			return err
		}
		if diff := cmp.Diff([]float32{6, 6}, o.Floats(autodiff.Grad(x))); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	left(t, o, d, 0, 0)
	left(t, ahead, d, 0, 0)
}

// TestALeafAndItsRecordedGradientHoldEachOther is pytorch#4661, and what the
// comment on CreateGraph warns of.
func TestALeafAndItsRecordedGradientHoldEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		zero   bool
		blocks int64
		nodes  int
	}{
		{"zeroed before the leaf goes, all is freed", true, 0, 0},
		// The gradient, and the 1 that it began with; the nodes of the leaf, of the two
		// products and of their sum.
		{"not zeroed, they stay", false, 2, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, d := newLeakyEager(t)
			o := autodiff.New(inner)
			x := o.Full(2, 3)
			o.Track(x)
			run(t, o, func() error {
				return o.BackwardWith(o.Sum(o.Mul(x, x)), autodiff.BackwardOptions{CreateGraph: true})
			})
			if c.zero {
				autodiff.ZeroGrad(x)
			}
			x.Release()
			left(t, o, d, c.blocks, c.nodes)
		})
	}
}

func TestWhatWasSavedMustNotBeOverwritten(t *testing.T) {
	cases := []struct {
		name string
		want string // in the error; "" for none
		body func(o *autodiff.Ops, x, w *engine.Tensor) *engine.Tensor
	}{
		{"an operand", "mul, called by autodiff_test.", func(o *autodiff.Ops, x, w *engine.Tensor) *engine.Tensor {
			loss := o.Sum(o.Mul(x, w))
			o.Valid().Assign(w, o.Full(1, 3))
			return loss
		}},
		{"a result", "saved float32 [3], and Assign has written", func(o *autodiff.Ops, x, _ *engine.Tensor) *engine.Tensor {
			y := o.Exp(x)
			loss := o.Sum(y)
			o.NoGrad(func() { o.Assign(y, x) })
			return loss
		}},
		{"a part of its block, through a view", "exp, called by", func(o *autodiff.Ops, x, _ *engine.Tensor) *engine.Tensor {
			y := o.Exp(x)
			o.Valid().Assign(o.Valid().Slice(y, 0, 0, 1), o.Full(1, 1))
			return o.Sum(y)
		}},
		{"the input of a checkpoint", "Assign has written to its block", func(o *autodiff.Ops, x, _ *engine.Tensor) *engine.Tensor {
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Neg(o.Exp(in[0])) }, x)
			o.Valid().Assign(x, o.Full(1, 3))
			return o.Sum(y)
		}},
		{"what a checkpoint reads beside its input", "checkpoint of [3]: Assign has written to what mul read", func(o *autodiff.Ops, x, w *engine.Tensor) *engine.Tensor {
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Mul(in[0], w) }, x)
			o.Valid().Assign(w, o.Full(1, 3))
			return o.Sum(y)
		}},
		{"a write before the operation is none of it", "", func(o *autodiff.Ops, x, w *engine.Tensor) *engine.Tensor {
			o.Valid().Assign(w, o.Full(1, 3))
			return o.Sum(o.Mul(x, w))
		}},
		{"a write to what was not saved is none of it", "", func(o *autodiff.Ops, x, w *engine.Tensor) *engine.Tensor {
			loss := o.Sum(o.Add(x, w))
			o.Valid().Assign(w, o.Full(1, 3))
			return loss
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				x, w := o.Full(0.5, 3), o.Full(2, 3)
				o.Track(x, w)
				return o.Backward(c.body(o, x, w))
			})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			left(t, o, d, 0, 0)
		})
	}
}
