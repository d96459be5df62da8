package autodiff_test

import (
	"errors"
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

func TestGradientHooks(t *testing.T) {
	cases := []struct {
		name string
		hook func(o engine.Ops, g *engine.Tensor) *engine.Tensor
		want float32 // gradient of x in Σ (x²)·3 at 2, with the hook on x²
	}{
		{"one that looks changes nothing", func(engine.Ops, *engine.Tensor) *engine.Tensor { return nil }, 12},
		{"one that returns what it was given changes nothing", func(_ engine.Ops, g *engine.Tensor) *engine.Tensor { return g }, 12},
		{"what it returns goes on", func(o engine.Ops, g *engine.Tensor) *engine.Tensor { return engine.Scale(o, g, 10) }, 120},
		{"a view of what it was given goes on", func(o engine.Ops, g *engine.Tensor) *engine.Tensor { return o.Reshape(g, 4) }, 12},
	}
	for _, c := range cases {
		for _, where := range []string{"a result", "a leaf"} {
			t.Run(c.name+", on "+where, func(t *testing.T) {
				inner, d := enginetest.NewEager(t)
				o := autodiff.New(inner)
				x := o.Full(2, 4)
				o.Track(x)
				calls := 0
				hook := func(o engine.Ops, g *engine.Tensor) *engine.Tensor { calls++; return c.hook(o, g) }
				var handle autodiff.Handle
				for pass, want := range []float32{c.want, 12} {
					run(t, o, func() error {
						y := o.Mul(x, x)
						if where == "a result" {
							handle = autodiff.OnGrad(y, hook)
						} else if pass == 0 {
							handle = autodiff.OnGrad(x, hook)
						}
						if pass == 1 {
							handle.Remove()
						}
						return o.Backward(o.Sum(engine.Scale(o, y, 3)))
					})
					if diff := cmp.Diff([]float32{want, want, want, want}, o.Floats(autodiff.Grad(x))); diff != "" {
						t.Errorf("pass %d: %s", pass, diff)
					}
					if calls != 1 {
						t.Errorf("pass %d: called %d times so far, want once", pass, calls)
					}
					autodiff.ZeroGrad(x)
				}
				x.Release()
				left(t, o, d, 0, 0)
			})
		}
	}
}

func TestWhatAHookComputesIsNotRecorded(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 4)
	o.Track(x)
	called := false
	autodiff.OnGrad(x, func(engine.Ops, *engine.Tensor) *engine.Tensor {
		called = true
		if autodiff.Tracked(o.Mul(x, x)) {
			t.Error("what a hook computes with the decorator is recorded")
		}
		return nil
	})
	run(t, o, func() error {
		if err := o.Backward(o.Sum(x)); err != nil {
			return err
		}
		if !called || !autodiff.Tracked(o.Neg(x)) {
			t.Errorf("the hook was called: %v; nothing is recorded after backward", called)
		}
		return nil
	})
	x.Release()
	left(t, o, d, 0, 0)
}

func TestAGradientThatAHookKeepsIsItsOwn(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x := o.Full(2, 4)
	o.Track(x)
	var kept *engine.Tensor
	autodiff.OnGrad(x, func(_ engine.Ops, g *engine.Tensor) *engine.Tensor {
		kept = g.Retain()
		return nil
	})
	run(t, o, func() error { return o.Backward(o.Sum(o.Mul(x, x))) })
	x.Release()
	if diff := cmp.Diff([]float32{4, 4, 4, 4}, o.Floats(kept)); diff != "" {
		t.Error(diff)
	}
	kept.Release()
	left(t, o, d, 0, 0)
}

func TestStopAtNonFinite(t *testing.T) {
	cases := []struct {
		name     string
		want     string // in the error; "" for none
		backward bool
		body     func(o *autodiff.Ops, x *engine.Tensor) error
	}{
		{"an infinity of a tracked operand", "recip of [3]: a NaN or an infinity came out", false, func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Recip(o.Sub(x, x))
			return nil
		}},
		{"a NaN of a plain operand", "log of [2]: ", false, func(o *autodiff.Ops, _ *engine.Tensor) error {
			o.Log(o.Full(-1, 2))
			return nil
		}},
		{"an overflow of two operands", "mul of [3] and [1]: ", false, func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Mul(x, o.Mul(o.Full(1e38, 1), o.Full(3, 1)))
			return nil
		}},
		{"it names the line of the call", "it was called by autodiff_test.TestStopAtNonFinite", false, func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Recip(o.Sub(x, x))
			return nil
		}},
		{"an operation that was given a NaN did not make it", "", false, func(o *autodiff.Ops, x *engine.Tensor) error {
			nan := o.Valid().Log(o.Full(-1, 3))
			o.Sum(o.Mul(x, nan))
			return nil
		}},
		{"large numbers whose sum would overflow are finite", "", false, func(o *autodiff.Ops, _ *engine.Tensor) error {
			o.Neg(o.Full(3e38, 8))
			return nil
		}},
		{"integers are finite", "", false, func(o *autodiff.Ops, x *engine.Tensor) error {
			o.ScatterAdd(o.Reshape(x, 3, 1), o.FromInts([]int32{0, 1, 1}, 3), 2)
			return nil
		}},
		{"in backward, an operation that was given an infinity did not make it", "", true, func(o *autodiff.Ops, x *engine.Tensor) error {
			y := o.Neg(x)
			autodiff.OnGrad(y, func(o engine.Ops, g *engine.Tensor) *engine.Tensor { return o.Recip(o.Sub(g, g)) })
			return o.Backward(o.Sum(y))
		}},
		{"in backward", "backward of sqrt of [3]", true, func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Sqrt(o.Sub(x, x))))
		}},
		{"in backward it names the forward call", "it was called by autodiff_test.TestStopAtNonFinite", true, func(o *autodiff.Ops, x *engine.Tensor) error {
			return o.Backward(o.Sum(o.Sqrt(o.Sub(x, x))))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			for _, on := range []bool{false, true, false} {
				o.StopAtNonFinite(on)
				err := engine.Run(o, func(*engine.Scope) error {
					x := o.Full(2, 3)
					o.Track(x)
					return c.body(o, x)
				})
				if !on || c.want == "" {
					if err != nil {
						t.Errorf("on is %v: %v", on, err)
					}
					continue
				}
				var e *autodiff.NonFiniteError
				if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Backward != c.backward {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
			}
			left(t, o, d, 0, 0)
		})
	}
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
		{"a hook releases the gradient of a leaf", "hook on leaf of [2]: it released the gradient", func(o *autodiff.Ops, x *engine.Tensor) error {
			autodiff.OnGrad(x, func(_ engine.Ops, g *engine.Tensor) *engine.Tensor { g.Release(); return nil })
			return o.Backward(o.Sum(o.Mul(x, x)))
		}},
		{"a hook releases the gradient of a result", "hook on mul of [2]: it released the gradient", func(o *autodiff.Ops, x *engine.Tensor) error {
			y := o.Mul(x, x)
			autodiff.OnGrad(y, func(_ engine.Ops, g *engine.Tensor) *engine.Tensor { g.Release(); return nil })
			return o.Backward(o.Sum(y))
		}},
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
