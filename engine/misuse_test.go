package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

// Reading one was once a panic that Run does not know.
func TestATensorOfAClosedDeviceIsAnError(t *testing.T) {
	const want = "the tensor's memory is gone: its device was closed"
	d := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), d)
	x := o.Full(1, 2)
	if d.Close() == nil {
		t.Error("a live block is no error of Close")
	}
	for name, f := range map[string]func(){
		"floats": func() { o.Floats(x) },
		"assign": func() { o.Assign(x, x) },
		"neg":    func() { o.Neg(x) },
	} {
		if err := engine.Run(o, func(*engine.Scope) error { f(); return nil }); err == nil || !strings.HasPrefix(err.Error(), name+" of [2]: "+want) {
			t.Errorf("%s: got %v, want %q in it", name, err, want)
		}
	}
	x.Release() // as a deferred release does
}

// A tensor that is not there was once a nil pointer's panic, which names nothing.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(o engine.Ops)
		want string
	}{
		{"an operand that is nil", func(o engine.Ops) { o.Add(nil, o.Full(1)) }, "add: "},
		{"the second operand", func(o engine.Ops) { engine.Check("mix", o.Full(1), nil) }, "mix: operand 2 of 2 is nil"},
		{"the only operand", func(engine.Ops) { engine.Check("mix", nil) }, "mix: the tensor is nil"},
		{"an operand that was released", func(o engine.Ops) { x := o.Full(1, 2); x.Release(); engine.Check("mix", x) }, "mix of [2]: the tensor was released before"},
		{"an operand that no operation made", func(o engine.Ops) { o.Neg(new(engine.Tensor)) }, "neg: the tensor is the zero value"},
		{"the shape of nothing", func(engine.Ops) { (*engine.Tensor)(nil).Shape() }, "shape: the tensor is nil"},
		{"an extent of nothing", func(engine.Ops) { (*engine.Tensor)(nil).Dim(0) }, "dim: the tensor is nil"},
		{"a result that is nil", func(o engine.Ops) { engine.Tidy(o, func() *engine.Tensor { return nil }) }, "tidy: the function returned no tensor"},
		{"a result that was released", func(o engine.Ops) {
			engine.Tidy(o, func() *engine.Tensor { x := o.Full(1); x.Release(); return x })
		}, "tidy of []: the tensor was released before"},
		{"a draw from nothing", func(engine.Ops) { (*engine.Random)(nil).Draw() }, "draw: the Random is nil"},
		{"the numbers of nothing", func(o engine.Ops) { o.Floats(nil) }, "floats: the tensor is nil"},
		{"indices that were released", func(o engine.Ops) { x := o.FromInts([]int32{1}, 1); x.Release(); o.Ints(x) }, "ints of [1]: the tensor was released before"},
		{"logits that are nil", func(o engine.Ops) { engine.CrossEntropy(o, nil, o.FromInts([]int32{0}, 1), nil) }, "cross entropy: operand 1 of 2 is nil"},
		{"an error from nothing", func(o engine.Ops) { engine.MSE(o, nil, o.Full(1), engine.Average) }, "mean squared error: operand 1 of 2 is nil"},
		{"a weight for each row, in another shape", func(o engine.Ops) {
			engine.CrossEntropy(o, o.Full(1, 2, 3), o.FromInts([]int32{0, 1}, 2), o.Full(1, 2, 1))
		}, "cross entropy of [2 3] and [2] and [2 1]: weights [m]"},
		{"one weight for all rows", func(o engine.Ops) {
			engine.CrossEntropy(o, o.Full(1, 2, 3), o.FromInts([]int32{0, 1}, 2), o.Full(1, 1))
		}, "cross entropy of [2 3] and [2] and [1]: weights [m]"},
		{"running moments without their axes", func(o engine.Ops) {
			engine.BatchNorm(o, o.Full(1, 1, 2, 1, 2), o.Full(0, 2), o.Full(1, 2), o.Full(1, 2), o.Full(0, 2), 1)
		}, "batch norm of [2] and [2]: moments of shape [1 2 1 1] are needed"},
		{"a sum to a shape that does not lead here", func(o engine.Ops) { engine.SumTo(o, o.Full(1, 3), engine.ShapeOf(2)) }, "sum to of [3]: [2] does not stretch to it"},
		{"a probability that is not a number", func(o engine.Ops) { engine.Dropout(o, o.Full(1), float32(math.NaN()), engine.Draw{}) }, "dropout of []: the probability NaN"},
		{"a probability above 1", func(o engine.Ops) { engine.Dropout(o, o.Full(1), 1.5, engine.Draw{}) }, "dropout of []: the probability 1.5"},
		{"owners that are no class", func(o engine.Ops) { o.Full(1, 2).Own(255) }, "own of [2]: owners 0b11111111 are not one class; name the one that holds the reference (allocated at engine/misuse_test.go:"},
		{"a share for nobody", func(o engine.Ops) { o.Full(1, 2).Share(0) }, "share of [2]: owners 0b0 are not one class"},
		{"a tensor of another device of the same name", func(o engine.Ops) {
			other := engine.NewEager(cpu.New(1), mem.NewDevice(mem.Host(), mem.Options{}))
			x := other.Full(1)
			defer x.Release()
			o.Neg(x)
		}, "neg of []: the operation runs on cpu 0, the tensor lies on another device of that name, which its Options.Index would tell apart"},
		{"writing to what Expand repeats", func(o engine.Ops) { o.Assign(o.Expand(o.Full(1), 4), o.Full(2, 4)) }, "assign of [4]: axis 0 repeats one element"},
		{"an average of repeated elements", func(o engine.Ops) {
			engine.Approach(o, o.Expand(o.Full(1), 4), o.Full(2, 4), o.Full(0.5))
		}, "approach of [4]: axis 0 repeats one element"},
		{"a window that goes nowhere", func(engine.Ops) { engine.Window{}.Out(3, 3) }, "window: strides of 0 and 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			err := engine.Run(o, func(*engine.Scope) error { c.f(o); return nil })
			if _, ok := errors.AsType[*engine.Error](err); !ok || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if n := enginetest.Live(d); n != 0 {
				t.Errorf("%d blocks are live", n)
			}
		})
	}
}
