package autodiff_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// odd is an operation whose parts a test chooses.
type odd struct {
	forward  func(c *autodiff.Context, o engine.Ops, in list) *engine.Tensor
	backward func(o engine.Ops, g *engine.Tensor) *engine.Tensor
}

func (*odd) Name() string { return "odd" }

func (f *odd) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	if f.forward == nil {
		return o.Neg(in[0])
	}
	return f.forward(c, o, in)
}

func (f *odd) Backward(_ *autodiff.Context, o engine.Ops, g *engine.Tensor) []*engine.Tensor {
	return list{f.backward(o, g)}
}

func released(o engine.Ops) *engine.Tensor {
	x := o.Full(1, 2)
	x.Release()
	return x
}

func ints(o engine.Ops) *engine.Tensor { return o.FromInts([]int32{1, 2}, 2) }

func TestMisuseNamesTheOperation(t *testing.T) {
	back := func(f func(o engine.Ops) *engine.Tensor) func(*autodiff.Ops, *engine.Tensor) error {
		return func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Apply(&odd{backward: func(o engine.Ops, _ *engine.Tensor) *engine.Tensor { return f(o) }}, x)))
		}
	}
	for _, c := range []struct {
		name string
		f    func(o *autodiff.Ops, x *engine.Tensor) error
		want string
	}{
		{"a function's gradient of integers", back(ints), "backward of odd of [2]: the gradient of input 0 is int32"},
		{"a function's gradient that was released", back(released), "backward of odd of [2]: the tensor was released before"},
		{"a leaf of integers", func(o *autodiff.Ops, _ *engine.Tensor) error { o.Track(ints(o)); return nil }, "track of [2]: a tensor of float32 is needed"},
		{"a leaf that is nil", func(o *autodiff.Ops, x *engine.Tensor) error { o.Track(x, nil); return nil }, "track: operand 2 of 2 is nil"},
		{"the gradient of nothing", func(*autodiff.Ops, *engine.Tensor) error { autodiff.Grad(nil); return nil }, "grad: the tensor is nil"},
		{"a loss that is nil", func(o *autodiff.Ops, _ *engine.Tensor) error { return o.Backward(nil) }, "backward: the loss is nil"},
		{"a loss that was released", func(o *autodiff.Ops, x *engine.Tensor) error {
			loss := o.Sum(x)
			loss.Release()
			return o.Backward(loss)
		}, "backward: the loss has been released"},
		{"a checkpoint of nothing", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return in[0] }, x, nil)
			return nil
		}, "checkpoint: operand 2 of 2 is nil"},
		{"a checkpoint without a result", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { o.Mul(in[0], in[0]); return nil }, x)
			return nil
		}, "result of checkpoint: the tensor is nil"},
		{"a function of nothing", func(o *autodiff.Ops, _ *engine.Tensor) error { o.Apply(&odd{}, nil); return nil }, "odd: the tensor is nil"},
		{"a function without a result", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Apply(&odd{forward: func(*autodiff.Context, engine.Ops, list) *engine.Tensor { return nil }}, x)
			return nil
		}, "result of odd: the tensor is nil"},
		{"a function that saves what it has released", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Apply(&odd{forward: func(c *autodiff.Context, o engine.Ops, in list) *engine.Tensor {
				c.Save(in[0], nil, released(o))
				return o.Neg(in[0])
			}}, x)
			return nil
		}, "odd saving of [2]: the tensor was released before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				x := o.Full(3, 2)
				o.Track(x)
				return c.f(o, x)
			})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			left(t, o, d, 0, 0)
		})
	}
}
