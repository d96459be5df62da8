package autodiff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

func TestForwardHooksSeeWhatIsRecordedUntilTheyAreRemoved(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(1, 2)
	o.Track(x)
	var seen []string
	note := func(who string) func(string, *engine.Tensor) {
		return func(op string, out *engine.Tensor) {
			seen = append(seen, fmt.Sprintf("%s %s %v", who, op, out.Shape()))
		}
	}
	first := o.OnForward(note("first"))
	second := o.OnForward(note("second"))
	step := func() []string {
		seen = nil
		run(t, o, func() error {
			o.Exp(o.Full(1, 2)) // not recorded
			return o.Backward(o.Sum(o.Exp(x)))
		})
		return seen
	}
	if diff := cmp.Diff([]string{"first exp [2]", "second exp [2]", "first sum []", "second sum []"}, step()); diff != "" {
		t.Error(diff)
	}
	first.Remove()
	first.Remove()
	if diff := cmp.Diff([]string{"second exp [2]", "second sum []"}, step()); diff != "" {
		t.Error(diff)
	}
	second.Remove()
	if got := step(); len(got) != 0 {
		t.Errorf("after both were removed: %v", got)
	}
	x.Release()
	left(t, o, d, 0, 0)
}

// frees is the identity; its Backward releases what is not its own.
type frees struct{ saved, grad, handsBack bool }

func (*frees) Name() string { return "frees" }

func (*frees) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	c.Save(in[0], in[0])
	return o.Copy(in[0])
}

func (f *frees) Backward(c *autodiff.Context, o engine.Ops, g *engine.Tensor) []*engine.Tensor {
	dx := o.Copy(g)
	if f.saved {
		c.Saved()[0].Release()
	}
	if f.grad {
		g.Release()
	}
	if f.handsBack {
		return list{g}
	}
	return list{dx}
}

// Each of these once left the device with live blocks, and most the scope open.
func TestReleasingWhatThePassOwnsIsAnErrorThatLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		want string
		f    func(o *autodiff.Ops, x *engine.Tensor) error
	}{
		{"the gradient is released after the pass", "release of [2]: the tensor was released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			if err := o.Backward(o.Sum(o.Mul(x, x))); err != nil {
				return err
			}
			autodiff.Grad(x).Release()
			return nil
		}},
		{"a function releases its gradient", "release of [2]: the tensor was released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Apply(&frees{grad: true}, o.Mul(x, x))))
		}},
		{"a function releases its gradient and returns it", "backward of frees of [2]: the tensor was released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Apply(&frees{grad: true, handsBack: true}, o.Mul(x, x))))
		}},
		{"a function releases what it saved", "release of [2]: the tensor was released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Apply(&frees{saved: true}, o.Mul(x, x))))
		}},
		{"a function releases what it saved, and the pass is recorded", "release of [2]: the tensor was released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.BackwardWith(o.Sum(o.Apply(&frees{saved: true}, o.Mul(x, x))), autodiff.BackwardOptions{CreateGraph: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				x := o.Full(3, 2)
				o.Track(x)
				return c.f(o, x)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			left(t, o, d, 0, 0)
			outside := o.Full(1)
			o.Begin().End()
			if outside.Released() {
				t.Error("a scope was left open")
			}
			outside.Release()
		})
	}
}
