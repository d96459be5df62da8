package engine_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

func TestScopes(t *testing.T) {
	cases := []struct {
		name string
		live int64 // blocks after the scope
		body func(o engine.Ops, s *engine.Scope) *engine.Tensor
	}{
		{"the end of a scope frees every temporary", 0, func(o engine.Ops, _ *engine.Scope) *engine.Tensor {
			o.Add(o.Full(1, 8), o.Exp(o.Full(2, 8)))
			return nil
		}},
		{"keep moves one tensor out", 1, func(o engine.Ops, s *engine.Scope) *engine.Tensor {
			return s.Keep(o.Neg(o.Full(1, 8)))
		}},
		{"a kept view keeps its block, and only that", 1, func(o engine.Ops, _ *engine.Scope) *engine.Tensor {
			return o.Slice(o.Reshape(o.Full(1, 8), 2, 4), 0, 1, 2).Keep()
		}},
		{"a tensor may be released before its scope ends", 0, func(o engine.Ops, _ *engine.Scope) *engine.Tensor {
			o.Full(1, 8).Release()
			return nil
		}},
		{"tidy hands its result to the scope around", 0, func(o engine.Ops, _ *engine.Scope) *engine.Tensor {
			engine.Tidy(o, func() *engine.Tensor { return o.Neg(o.Full(1, 8)) })
			return nil
		}},
		{"the end of a scope ends the scopes inside", 0, func(o engine.Ops, _ *engine.Scope) *engine.Tensor {
			o.Begin()
			o.Full(1, 8)
			o.Begin()
			o.Full(1, 8)
			return nil
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			var kept *engine.Tensor
			if err := engine.Run(o, func(s *engine.Scope) error {
				kept = c.body(o, s)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if got := enginetest.Live(d); got != c.live {
				t.Errorf("%d blocks are live, want %d", got, c.live)
			}
			if kept != nil {
				kept.Release()
			}
		})
	}
}

func TestTidyFreesWhatItMadeOnTheWay(t *testing.T) {
	o, d := enginetest.NewEager(t)
	out := engine.Tidy(o, func() *engine.Tensor { return o.Neg(o.Neg(o.Full(1, 8))) })
	if got := enginetest.Live(d); got != 1 {
		t.Errorf("%d blocks are live after tidy, want the result's", got)
	}
	out.Release()
}

func TestMisuseIsAnErrorThatSaysWhatAndWhere(t *testing.T) {
	other := engine.NewEager(cpu.New(1), mem.NewDevice(mem.Host(), mem.Options{Index: 1}))
	cases := []struct {
		name string
		want string
		body func(o engine.Ops)
	}{
		{"use after release", "add of [8]: the tensor was released before", func(o engine.Ops) {
			a := o.Full(1, 8)
			a.Release()
			o.Add(a, a)
		}},
		{"use after release names the line that allocated", "allocated at engine/tensor_test.go:", func(o engine.Ops) {
			a := o.Full(1, 8)
			a.Release()
			o.Neg(a)
		}},
		{"double release", "release of [2 3]: the tensor was released before; each handle", func(o engine.Ops) {
			a := o.Full(1, 2, 3)
			a.Release()
			a.Release()
		}},
		{"shapes that do not broadcast", "add of [2 3] and [4 3]: the shapes do not broadcast", func(o engine.Ops) {
			o.Add(o.Full(1, 2, 3), o.Full(1, 4, 3))
		}},
		{"inner extents of a product that differ", "matmul of [2 3] and [2 3]", func(o engine.Ops) {
			o.MatMul(o.Full(1, 2, 3), o.Full(1, 2, 3))
		}},
		{"two devices", "the operation runs on cpu 0, the tensor lies on cpu 1", func(o engine.Ops) {
			a := other.Full(1, 2)
			defer a.Release()
			o.Neg(a)
		}},
		{"an element type", "an operand of float32 is needed, this one is int32", func(o engine.Ops) {
			o.Neg(o.FromInts([]int32{1}, 1))
		}},
		{"an index outside its table", "index 1 is 7, outside a table of 2 rows", func(o engine.Ops) {
			o.Floats(o.Gather(o.Full(1, 2, 2), o.FromInts([]int32{0, 7}, 2)))
		}},
		{"too much data", "from floats of [2]: 3 elements were given", func(o engine.Ops) { o.FromFloats(make([]float32, 3), 2) }},
		{"an axis that is not there", "sum of [2]: there is no axis 1", func(o engine.Ops) { o.Sum(o.Full(1, 2), 1) }},
		{"keys of another width than the queries", "attention of [1 2 3 4] and [1 2 3 5] and [1 2 3 4]: queries", func(o engine.Ops) {
			engine.Attention(o, o.Full(1, 1, 2, 3, 4), o.Full(1, 1, 2, 3, 5), o.Full(1, 1, 2, 3, 4), 1, false)
		}},
		{"a causal attention with fewer keys than queries", "the first positions would see none", func(o engine.Ops) {
			k := o.Full(1, 1, 2, 3, 4)
			engine.Attention(o, o.Full(1, 1, 2, 5, 4), k, k, 1, true)
		}},
		{"a scale that turns the softmax around", "the scale is not above 0", func(o engine.Ops) {
			q := o.Full(1, 1, 2, 3, 4)
			engine.Attention(o, q, q, q, 0, false)
		}},
		{"a convolution with too few biases", "conv2d of [2 1 3 3] and [1]: filters [o c kh kw] and a bias [o]", func(o engine.Ops) {
			engine.Convolve(o, o.Full(1, 1, 1, 4, 4), o.Full(1, 2, 1, 3, 3), o.Full(0, 1), engine.Square(3, 1, 0))
		}},
		{"a convolution of too small an image", "conv2d of [1 1 2 2] and [2 1 3 3]: an image", func(o engine.Ops) {
			engine.Convolve(o, o.Full(1, 1, 1, 2, 2), o.Full(1, 2, 1, 3, 3), o.Full(0, 2), engine.Square(3, 1, 0))
		}},
		{"a step by a gradient of another shape", "momentum of [2 3] and [3]: operands of equal shape", func(o engine.Ops) {
			p := o.Full(1, 2, 3)
			engine.Momentum(o, p, o.Full(1, 3), p, 0.9, 0.1)
		}},
		{"a step of a released parameter", "momentum of [2]: the tensor was released before", func(o engine.Ops) {
			p, g := o.Full(1, 2), o.Full(1, 2)
			p.Release()
			engine.Momentum(o, p, g, g, 0.9, 0.1)
		}},
		{"seven axes", "7 axes; at most 6", func(o engine.Ops) { o.Full(1, 1, 1, 1, 1, 1, 1, 1) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			err := engine.Run(o, func(*engine.Scope) error {
				c.body(o)
				return nil
			})
			var e *engine.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want one with %q", err, c.want)
			}
			if got := enginetest.Live(d); got != 0 {
				t.Errorf("%d blocks are live after the error", got)
			}
		})
	}
}

func TestRunPassesOtherPanicsOnOnceTemporariesAreGone(t *testing.T) {
	o, d := enginetest.NewEager(t)
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
		if got := enginetest.Live(d); got != 0 {
			t.Errorf("%d blocks are live after the panic", got)
		}
	}()
	_ = engine.Run(o, func(*engine.Scope) error {
		o.Full(1, 8)
		panic("mine")
	})
}

func TestAFullDeviceIsAnErrorOfTheOperation(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 3 * snapshot.MiB})
	o := engine.NewEager(cpu.New(1), d)
	err := engine.Run(o, func(*engine.Scope) error {
		o.Full(0, 1<<19)
		o.Full(0, 1<<19)
		return nil
	})
	var full *mem.OutOfMemoryError
	var e *engine.Error
	if !errors.As(err, &full) || !errors.As(err, &e) || e.Op != "full" {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestAKeptHandleThatIsDroppedIsProvedLost(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), d)
	func() {
		kept := o.Full(1, 256).Keep()
		released := o.Full(1, 256).Keep()
		released.Release()
		runtime.KeepAlive(kept)
	}()
	for range 50 { // cleanups run after a collection, in their own time
		runtime.GC()
		if lost := d.Lost(); len(lost) > 0 {
			if len(lost) != 1 || lost[0].Blocks != 1 || lost[0].Bytes != 1024 {
				t.Errorf("lost %+v, want one block of 1024 bytes", lost)
			}
			return
		}
		runtime.Gosched()
	}
	t.Error("the dropped handle was not noticed")
}

func TestOwnerClasses(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	a := o.Full(1, 4)
	shared := a.Share(snapshot.OwnedByTape)
	a.Own(snapshot.OwnedByOptim)
	if got, want := a.Storage().Owners(), snapshot.OwnedByOptim|snapshot.OwnedByTape; got != want {
		t.Errorf("owners %v, want %v", got.Names(), want.Names())
	}
	shared.Release()
	if got := a.Storage().Owners(); got != snapshot.OwnedByOptim {
		t.Errorf("owners %v after the tape's release", got.Names())
	}
	a.Release()
}

// badHistory panics when it is released, as a tape does whose gradient a hook has
// released.
type badHistory struct{ what any }

func (badHistory) Retain()    {}
func (h badHistory) Release() { panic(h.what) }

// Such a panic once left Run as a panic, the scope open and the temporaries live.
func TestAPanicAtTheEndOfAScopeLeavesNothingOpen(t *testing.T) {
	misuse := &engine.Error{Op: "release", Reason: "by a hook"}
	own := errors.New("own")
	for _, c := range []struct {
		name string
		end  any   // what the end of the scope panics with
		f    error // what the function returns
	}{
		{"a misuse is the error of Run", misuse, nil},
		{"a misuse comes after the error of the function", misuse, own},
		{"any other panic goes on", "wild", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			var raised any
			err := func() (err error) {
				defer func() { raised = recover() }()
				return engine.Run(o, func(*engine.Scope) error {
					for range 2 { // in a scope that is left open, and in Run's
						o.Full(1, 8)
						o.Full(1, 8).Attach(badHistory{c.end})
						o.Full(1, 8).Attach(badHistory{c.end})
						o.Begin()
					}
					return c.f
				})
			}()
			if e, ok := c.end.(error); ok && (raised != nil || !errors.Is(err, e)) || !ok && raised != c.end {
				t.Errorf("error %v, panic %v", err, raised)
			}
			if c.f != nil && !errors.Is(err, c.f) {
				t.Errorf("the error of the function is lost in %v", err)
			}
			if n := enginetest.Live(d); n != 0 {
				t.Errorf("%d blocks are live", n)
			}
			outside := o.Full(1)
			s := o.Begin()
			s.End()
			if outside.Released() {
				t.Error("a scope was left open")
			}
			outside.Release()
		})
	}
}
