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
	"github.com/memdiag/memdiag/snapshot"
)

// taped counts the device's blocks that a tape holds.
func taped(owners map[snapshot.Owners]int) (n int) {
	for o, count := range owners {
		if o&snapshot.OwnedByTape != 0 {
			n += count
		}
	}
	return n
}

func TestACheckpointSavesItsInputsAlone(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	x, w := o.Full(0.5, 3), o.Full(2, 3)
	o.Track(x, w)
	deep := func(in ...*engine.Tensor) *engine.Tensor {
		y := in[0]
		for range 10 {
			y = o.Tanh(o.Mul(y, w)) // w gets its gradient from inside
		}
		return y
	}
	passes := map[string]func() *engine.Tensor{
		"plain":        func() *engine.Tensor { return deep(x) },
		"checkpointed": func() *engine.Tensor { return o.Checkpoint(deep, x) },
		"nested": func() *engine.Tensor {
			return o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				y := in[0]
				for range 2 {
					y = o.Tanh(o.Mul(y, w))
					y = o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
						for range 4 {
							in[0] = o.Tanh(o.Mul(in[0], w))
						}
						return in[0]
					}, y)
				}
				return y
			}, x)
		},
	}
	// x and w, and the ten results of tanh; or x alone; or x and what f hands to the
	// inner two.
	saved := map[string]int{"plain": 12, "checkpointed": 1, "nested": 3}
	gradients := map[string][][]float32{}
	for name, forward := range passes {
		recorded := 0
		count := o.OnForward(func(string, *engine.Tensor) { recorded++ })
		run(t, o, func() error {
			loss := engine.Tidy(o, func() *engine.Tensor { return o.Sum(forward()) })
			if got := taped(enginetest.Owners(d)); got != saved[name] {
				t.Errorf("%s: the tape holds %d blocks, want %d", name, got, saved[name])
			}
			return o.Backward(loss)
		})
		gradients[name] = [][]float32{o.Floats(autodiff.Grad(x)), o.Floats(autodiff.Grad(w))}
		autodiff.ZeroGrad(x, w)
		left(t, o, d, 2, 2)
		count.Remove()
		if recorded != 21 {
			t.Errorf("%s: %d operations were recorded, want 20 and the sum, the second run not among them", name, recorded)
		}
	}
	for name := range passes {
		if diff := cmp.Diff(gradients["plain"], gradients[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	x.Release()
	w.Release()
}

func TestCheckpoints(t *testing.T) {
	cases := []struct {
		name string
		want string // in the error; "" for none
		body func(o *autodiff.Ops, x *engine.Tensor) error
	}{
		{"one whose result is dropped", "", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Exp(o.Exp(in[0])) }, x)
			return nil
		}},
		{"a Checkpoint that tracks nothing", "", func(o *autodiff.Ops, _ *engine.Tensor) error {
			o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Exp(in[0]) }, o.Full(1, 3))
			return nil
		}},
		{"one in NoGrad", "", func(o *autodiff.Ops, x *engine.Tensor) error {
			o.NoGrad(func() {
				y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Exp(in[0]) }, x)
				if autodiff.Tracked(y) {
					panic("the result is tracked")
				}
			})
			return nil
		}},
		{"one whose graph is kept is run again each time", "", func(o *autodiff.Ops, x *engine.Tensor) error {
			runs := 0
			loss := o.Sum(o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { runs++; return o.Exp(o.Exp(in[0])) }, x))
			for range 2 {
				if err := o.BackwardWith(loss, autodiff.BackwardOptions{KeepGraph: true}); err != nil {
					return err
				}
			}
			if runs != 3 {
				return fmt.Errorf("it was run %d times, want 3", runs)
			}
			return nil
		}},
		{"one with a branch that no gradient comes to", "", func(o *autodiff.Ops, x *engine.Tensor) error {
			var other *engine.Tensor
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				if other == nil {
					other = o.Exp(in[0]).Keep()
				} else {
					o.Exp(in[0])
				}
				return o.Tanh(in[0])
			}, x)
			defer other.Release()
			return o.Backward(o.Sum(y))
		}},
		{"one that does another operation", "checkpoint: run again, the function did tanh where it did exp at first", func(o *autodiff.Ops, x *engine.Tensor) error {
			first := true
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				if first {
					first = false
					return o.Exp(in[0])
				}
				return o.Tanh(in[0])
			}, x)
			return o.Backward(o.Sum(y))
		}},
		{"one that does more", "run again, the function did exp where it had ended at first", func(o *autodiff.Ops, x *engine.Tensor) error {
			n := 0
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				n++
				y := in[0]
				for range n {
					y = o.Exp(y)
				}
				return y
			}, x)
			return o.Backward(o.Sum(y))
		}},
		{"one that does less", "run again, the function ended where it did exp at first", func(o *autodiff.Ops, x *engine.Tensor) error {
			n := 3
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				n--
				y := in[0]
				for range n {
					y = o.Exp(y)
				}
				return y
			}, x)
			return o.Backward(o.Sum(y))
		}},
		{"one that computes with another operand", "did mul of other operands", func(o *autodiff.Ops, x *engine.Tensor) error {
			factor, other := x, o.Full(1, 3)
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				f := factor
				factor = other
				return o.Mul(in[0], f)
			}, x)
			return o.Backward(o.Sum(y))
		}},
		{"one that differentiates what it has computed", "backward: a Checkpoint is under way", func(o *autodiff.Ops, x *engine.Tensor) error {
			var inner error
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor {
				y := o.Exp(in[0])
				inner = o.Backward(o.Sum(y))
				return o.Mul(y, y)
			}, x)
			return errors.Join(inner, o.Backward(o.Sum(y)))
		}},
		{"one whose second run panics", "released before", func(o *autodiff.Ops, x *engine.Tensor) error {
			w := o.Full(1, 3)
			y := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return o.Mul(o.Exp(in[0]), w) }, x)
			w.Release()
			return o.Backward(o.Sum(y))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				x := o.Full(0.5, 3)
				o.Track(x)
				return c.body(o, x)
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
