package autodiff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// cube is x³ with its derivative, as a caller writes it.
type cube struct {
	wrong string // what is wrong with its backward
}

func (*cube) Name() string { return "cube" }

func (f *cube) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	square := o.Mul(in[0], in[0])
	c.Save(in[0], nil, square)
	return o.Mul(in[0], square)
}

func (f *cube) Backward(c *autodiff.Context, o engine.Ops, g *engine.Tensor) []*engine.Tensor {
	x := c.Saved()[0]
	dx := o.Mul(g, engine.Scale(o, o.Mul(x, x), 3))
	switch f.wrong {
	case "count":
		return nil
	case "shape":
		return list{o.Sum(dx)}
	}
	return list{dx}
}

func TestFunctions(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	p := newProbe(gradientCase{inputs: []input{in(-1, 1, 2, 3)}})
	p.f = func(_ engine.Ops, x list) *engine.Tensor { return o.Apply(&cube{}, x[0]) }
	p.differences(t, p.gradients(t, o), 2e-3, func() (v float64) {
		run(t, o, func() error { v = p.value(o.Valid()); return nil })
		return v
	})
	p.differences(t, p.second(t, o), 5e-3, func() (sum float64) {
		for j, v := range p.gradients(t, o)[0] {
			sum += float64(p.weights[j]) * float64(v)
		}
		return sum
	})
	left(t, o, d, 0, 0)

	run(t, o, func() error {
		x := o.Full(2, 3)
		if autodiff.Tracked(o.Apply(&cube{}, x)) {
			t.Error("the result of a plain input is tracked")
		}
		o.Track(x)
		loss := engine.Tidy(o, func() *engine.Tensor { return o.Sum(o.Apply(&cube{}, x)) })
		if got := taped(enginetest.Owners(d)); got != 2 {
			t.Errorf("the tape holds %d blocks, want the input and its square", got)
		}
		return o.Backward(loss)
	})
	for wrong, want := range map[string]string{
		"count": "backward of cube of [3]: it returned 0 gradients for 1 inputs",
		"shape": "backward of cube of [] and [3]: the gradient of input 0 has another shape",
	} {
		err := engine.Run(o, func(*engine.Scope) error {
			x := o.Full(2, 3)
			o.Track(x)
			return o.Backward(o.Sum(o.Apply(&cube{wrong: wrong}, x)))
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	left(t, o, d, 0, 0)
}

// choice hands its first input through, and its gradient with it.
type choice struct{ wants []bool }

func (*choice) Name() string { return "choice" }

func (f *choice) Forward(c *autodiff.Context, _ engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	for i := range in {
		f.wants = append(f.wants, c.Wants(i))
	}
	return in[0]
}

func (*choice) Backward(_ *autodiff.Context, _ engine.Ops, g *engine.Tensor) []*engine.Tensor {
	return list{g, nil, g}
}

func TestAFunctionMayHandItsInputThrough(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	run(t, o, func() error {
		x, y, z := o.Full(2, 3), o.Full(3, 3), o.Full(4, 3)
		o.Track(x, y)
		f := &choice{}
		if err := o.Backward(o.Sum(o.Apply(f, x, y, z))); err != nil {
			return err
		}
		if diff := cmp.Diff([]bool{true, true, false}, f.wants); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]float32{1, 1, 1}, o.Floats(autodiff.Grad(x))); diff != "" {
			t.Error(diff)
		}
		if g := autodiff.Grad(y); g != nil {
			t.Errorf("an input without a gradient has %v", g)
		}
		return nil
	})
	left(t, o, d, 0, 0)
}

// keeper is pytorch#25340: it keeps its result on itself.
type keeper struct{ kept *engine.Tensor }

func (*keeper) Name() string { return "keeper" }

func (f *keeper) Forward(_ *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	return o.Exp(in[0])
}

func (f *keeper) Backward(_ *autodiff.Context, o engine.Ops, g *engine.Tensor) []*engine.Tensor {
	return list{o.Mul(g, f.kept)}
}

func TestAResultThatItsFunctionKeepsIsNeverFreed(t *testing.T) {
	inner, d := newLeakyEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 3)
	o.Track(x)
	for i := range 5 {
		run(t, o, func() error {
			f := &keeper{}
			y := o.Apply(f, x)
			f.kept = y.Retain()
			return o.Backward(o.Sum(y))
		})
		left(t, o, d, int64(3+i), 2+i) // the leaf and its gradient, and a result for each step
	}
}

// fixed has a gradient that is the caller's own tensor.
type fixed struct{ grad *engine.Tensor }

func (*fixed) Name() string { return "fixed" }

func (*fixed) Forward(_ *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	return o.Neg(in[0])
}

func (f *fixed) Backward(*autodiff.Context, engine.Ops, *engine.Tensor) []*engine.Tensor {
	return list{f.grad}
}

func TestAGradientOfTheCallersOwnStaysTheCallers(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	g := o.Full(7, 3)
	var x *engine.Tensor
	for range 2 { // the second adds to what the first has gathered
		run(t, o, func() error {
			if x == nil {
				x = o.Full(1, 3).Keep()
				o.Track(x)
			}
			return o.Backward(o.Sum(o.Apply(&fixed{g}, x)))
		})
	}
	if diff := cmp.Diff([]float32{14, 14, 14}, o.Floats(autodiff.Grad(x))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{7, 7, 7}, o.Floats(g)); diff != "" {
		t.Errorf("the caller's tensor: %s", diff)
	}
	x.Release()
	g.Release()
	left(t, o, d, 0, 0)
}
