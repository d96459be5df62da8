package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
)

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
		{"the shape of nothing", func(engine.Ops) { (*engine.Tensor)(nil).Shape() }, "shape: the tensor is nil"},
		{"an extent of nothing", func(engine.Ops) { (*engine.Tensor)(nil).Dim(0) }, "dim: the tensor is nil"},
		{"a result that is nil", func(o engine.Ops) { engine.Tidy(o, func() *engine.Tensor { return nil }) }, "tidy: the function returned no tensor"},
		{"a result that was released", func(o engine.Ops) {
			engine.Tidy(o, func() *engine.Tensor { x := o.Full(1); x.Release(); return x })
		}, "tidy of []: the tensor was released before"},
		{"a draw from nothing", func(engine.Ops) { (*engine.Random)(nil).Draw() }, "draw: the Random is nil"},
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
