package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

// attempt runs a case on operands, with gradients if o has them. Anything but an
// *engine.Error that it panics with is the test's failure.
func attempt(t rapid.TB, o engine.Ops, c goldenNumbers, operands func() list) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("a panic that is no *engine.Error: %v", p)
		}
	}()
	return engine.Run(o, func(*engine.Scope) error {
		in := operands()
		loss := o.Full(0)
		for _, out := range goldenCases[c.Name].f(o, in) {
			if autodiff.Tracked(out) {
				loss = o.Add(loss, o.Sum(out))
			}
		}
		if a, ok := o.(*autodiff.Ops); ok && autodiff.Tracked(loss) {
			defer autodiff.ZeroGrad(in...)
			return a.Backward(loss)
		}
		return o.Sync()
	})
}

// track makes a leaf of an operand where that can be.
func track(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	if a, ok := o.(*autodiff.Ops); ok && x.DType() == engine.Float32 {
		a.Track(x)
	}
	return x
}

// leaves makes the operands of a case, those that get a gradient tracked.
func leaves(o engine.Ops, c goldenNumbers) list {
	in := make(list, len(c.In))
	for i, a := range c.In {
		in[i] = a.upload(o)
		if c.Grad != nil && c.Grad[i] != nil {
			track(o, in[i])
		}
	}
	return in
}

// both calls f with operations that record and with some that do not, over fast
// kernels and over the reference's, each on a device of its own, on which nothing
// is left then.
func both(t *testing.T, f func(t *testing.T, o engine.Ops, d *mem.Device)) {
	for name, k := range map[string]engine.Kernels{"fast": cpu.New(1), "reference": cpu.Reference()} {
		for _, recording := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, recording %v", name, recording), func(t *testing.T) {
				d := mem.NewDevice(mem.Host(), mem.Options{})
				o := engine.Ops(engine.NewEager(k, d))
				if recording {
					o = autodiff.New(o)
				}
				f(t, o, d)
				if a, ok := o.(*autodiff.Ops); ok && a.Nodes() != 0 {
					t.Errorf("%d nodes are left", a.Nodes())
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestAnOperandThatIsNotThereIsAnErrorOfEveryOperation(t *testing.T) {
	elsewhere, _ := enginetest.NewEager(t)
	foreign := func() *engine.Tensor { return elsewhere.Full(1, 2) }
	cases := readGolden(t).Cases
	both(t, func(t *testing.T, o engine.Ops, d *mem.Device) {
		for _, c := range cases {
			for i := range c.In {
				for name, spoil := range map[string]func(x *engine.Tensor) *engine.Tensor{
					"nil":      func(*engine.Tensor) *engine.Tensor { return nil },
					"released": func(x *engine.Tensor) *engine.Tensor { x.Release(); return x },
					"on another device": func(x *engine.Tensor) *engine.Tensor {
						y := foreign()
						t.Cleanup(y.Release)
						return y
					},
				} {
					err := attempt(t, o, c, func() list {
						in := leaves(o, c)
						in[i] = spoil(in[i])
						return in
					})
					if _, ok := errors.AsType[*engine.Error](err); !ok {
						t.Errorf("%s with operand %d %s: got the error %v", c.Name, i, name, err)
					}
					if n := enginetest.Live(d); n != 0 {
						t.Fatalf("%s with operand %d %s: %d blocks are live", c.Name, i, name, n)
					}
				}
			}
		}
	})
}

// drawn makes operands of a case with its extents exchanged for others, the same
// everywhere, so that many go together, and now and then one of any shape or type.
// Numbers of int32 are indices that may lie outside of what they are looked up in.
func drawn(t *rapid.T, o engine.Ops, like []array) list {
	extents := map[int]int{}
	for _, a := range like {
		for _, d := range a.Shape {
			if _, known := extents[d]; !known {
				extents[d] = d
				if rapid.Bool().Draw(t, fmt.Sprintf("another extent than %d", d)) {
					extents[d] = rapid.IntRange(0, 4).Draw(t, fmt.Sprintf("extent for %d", d))
				}
			}
		}
	}
	odd := rapid.IntRange(0, 2*len(like)).Draw(t, "operand of any shape")
	in := make(list, len(like))
	for i, a := range like {
		label := fmt.Sprintf("operand %d ", i)
		dims := make([]int, len(a.Shape))
		for axis, d := range a.Shape {
			dims[axis] = extents[d]
		}
		if i == odd {
			dims = rapid.SliceOfN(rapid.IntRange(0, 4), 0, engine.MaxRank).Draw(t, label+"dims")
		}
		n := engine.ShapeOf(dims...).Elements()
		switch of := rapid.IntRange(0, 19).Draw(t, label+"kind"); {
		case (a.Ints != nil) != (of == 0):
			in[i] = o.FromInts(rapid.SliceOfN(rapid.Int32Range(-1, 5), n, n).Draw(t, label+"ints"), dims...)
		case of < 5:
			in[i] = track(o, o.Expand(o.Full(0.5), dims...))
		default:
			in[i] = track(o, o.Full(0.5, dims...))
		}
	}
	return in
}

func TestOperandsOfAnyShapeComputeOrSayWhatIsNeeded(t *testing.T) {
	cases := readGolden(t).Cases
	both(t, func(t *testing.T, o engine.Ops, d *mem.Device) {
		rapid.Check(t, func(t *rapid.T) {
			c := rapid.SampledFrom(cases).Draw(t, "case")
			_ = attempt(t, o, c, func() list { return drawn(t, o, c.In) })
			_ = o.Sync() // an index may have been outside its table
			if n := enginetest.Live(d); n != 0 {
				t.Fatalf("%s: %d blocks are live", c.Name, n)
			}
		})
	})
}

func TestNumbersOutOfAllMeasureAreErrors(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 4 << 20})
	o := autodiff.New(engine.NewEager(cpu.New(1), d))
	numbers := rapid.SampledFrom([]int{math.MinInt, -1 << 32, -2, -1, 0, 1, 2, 3, 4, 5, 1 << 31, 1 << 32, 1 << 62, math.MaxInt})
	rapid.Check(t, func(t *rapid.T) {
		n := func(label string) int { return numbers.Draw(t, label) }
		w := func() engine.Window {
			return engine.Window{
				Kernel: [2]int{n("kernel height"), n("kernel width")}, Stride: [2]int{n("stride down"), n("stride along")},
				Pad: [2]int{n("pad above"), n("pad beside")},
			}
		}
		x := func(dims ...int) *engine.Tensor {
			y := o.Full(1, dims...)
			o.Track(y)
			return y
		}
		calls := map[string]func() *engine.Tensor{
			"full":           func() *engine.Tensor { return o.Full(1, n("a"), n("b")) },
			"rand":           func() *engine.Tensor { return o.Rand(engine.Draw{}, n("a"), n("b")) },
			"reshape":        func() *engine.Tensor { return o.Reshape(x(2, 3), n("a"), n("b"), n("c")) },
			"reshape of 0":   func() *engine.Tensor { return o.Reshape(x(0, 3), n("a"), n("b"), n("c")) },
			"permute":        func() *engine.Tensor { return o.Permute(x(2, 3), n("a"), n("b")) },
			"slice":          func() *engine.Tensor { return o.Slice(x(2, 3), n("axis"), n("from"), n("to")) },
			"expand":         func() *engine.Tensor { return o.Copy(o.Expand(x(1, 1), n("a"), n("b"), n("c"))) },
			"sum":            func() *engine.Tensor { return o.Sum(x(2, 3), n("a"), n("b")) },
			"max":            func() *engine.Tensor { return o.MaxOver(x(2, 3), n("axis")) },
			"concat":         func() *engine.Tensor { return o.Concat(n("axis"), x(2, 3), x(2, 3)) },
			"concat of much": func() *engine.Tensor { return o.Concat(0, o.Expand(x(1), n("a")), o.Expand(x(1), n("b"))) },
			"scatter-add":    func() *engine.Tensor { return o.ScatterAdd(x(1, 2), o.FromInts([]int32{0}, 1), n("rows")) },
			"unfold":         func() *engine.Tensor { return o.Unfold(x(1, 2, 4, 4), w()) },
			"fold":           func() *engine.Tensor { return o.Fold(x(1, 2, 4), w(), n("c"), n("h"), n("w")) },
			"conv2d":         func() *engine.Tensor { return o.Conv2d(x(1, 2, 4, 4), x(1, 2, 2, 2), w()) },
			"max pool":       func() *engine.Tensor { return engine.MaxPool2d(o, x(1, 2, 4, 4), w()) },
			"upsample":       func() *engine.Tensor { return engine.Upsample2x(o, o.Expand(x(1, 1, 1, 1), 1, 1, n("h"), n("w"))) },
			"matmul":         func() *engine.Tensor { return o.MatMul(o.Expand(x(1, 1), n("m"), 1), o.Expand(x(1, 1), 1, n("n"))) },
			"mean":           func() *engine.Tensor { return engine.Mean(o, x(2, 3), n("axis")) },
			"softmax":        func() *engine.Tensor { return engine.Softmax(o, o.Expand(x(1, 1), n("a"), n("b"))) },
		}
		call := rapid.SampledFrom(slices.Sorted(maps.Keys(calls))).Draw(t, "call")
		_ = engine.Run(o, func(*engine.Scope) error { // a panic with anything but an *engine.Error passes
			if y := calls[call](); autodiff.Tracked(y) {
				return o.Backward(o.Sum(y))
			}
			return nil
		})
		_ = o.Sync()
		if n := enginetest.Live(d); n != 0 || o.Nodes() != 0 {
			t.Fatalf("%d blocks and %d nodes are left", n, o.Nodes())
		}
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// refusing is the host's memory, and gives one segment only.
type refusing struct {
	mem.Driver
	given bool
}

func (r *refusing) Allocate(n int64) (mem.Memory, error) {
	if r.given {
		return nil, errors.New("there is no more")
	}
	r.given = true
	return r.Driver.Allocate(n)
}

// ballast fills a segment with blocks of the smallest size, and makes room from
// its end.
type ballast struct {
	o      engine.Ops
	blocks list
}

func (b *ballast) fill() {
	full := func() error {
		for {
			b.blocks = append(b.blocks, b.o.Full(0).Keep())
		}
	}
	_ = engine.Run(b.o, func(*engine.Scope) error { return full() })
}

func (b *ballast) release(n int) {
	for _, x := range b.blocks[len(b.blocks)-n:] {
		x.Release()
	}
	b.blocks = b.blocks[:len(b.blocks)-n]
}

func TestWhicheverAllocationFailsNothingIsLeft(t *testing.T) {
	for name, k := range map[string]engine.Kernels{"fast": cpu.New(1), "reference": cpu.Reference()} {
		t.Run(name, func(t *testing.T) {
			d := mem.NewDevice(&refusing{Driver: mem.Host()}, mem.Options{})
			o := autodiff.New(engine.NewEager(k, d))
			weights := ballast{o: o}
			weights.fill()
			for _, c := range readGolden(t).Cases {
				for room := 0; ; room++ {
					blocks := int(enginetest.Live(d))
					err := attempt(t, o, c, func() list { return leaves(o, c) })
					if left := int(enginetest.Live(d)) - blocks; left != 0 || o.Nodes() != 0 {
						t.Fatalf("%s with room for %d blocks: %d blocks and %d nodes are left", c.Name, room, left, o.Nodes())
					}
					if err == nil {
						break
					}
					if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full {
						t.Fatalf("%s with room for %d blocks: %v", c.Name, room, err)
					}
					weights.release(1)
				}
				weights.fill()
			}
			weights.release(len(weights.blocks))
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhicheverOperationIsCutShortByAPanicNothingIsLeft(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	for _, c := range readGolden(t).Cases {
		for at := 1; ; at++ { // the call of a hook that panics
			calls, panicked := 0, false
			forward := o.OnForward(func(string, *engine.Tensor) {
				if calls++; calls == at {
					panic("mine")
				}
			})
			func() {
				defer func() { panicked = recover() == "mine" }()
				_ = engine.Run(o, func(*engine.Scope) error {
					in := leaves(o, c)
					loss := o.Full(0)
					for _, out := range goldenCases[c.Name].f(o, in) {
						if autodiff.Tracked(out) {
							loss = o.Add(loss, o.Sum(out))
						}
					}
					if autodiff.Tracked(loss) {
						defer autodiff.ZeroGrad(in...)
						return o.Backward(loss)
					}
					return nil
				})
			}()
			forward.Remove()
			if n := enginetest.Live(d); n != 0 || o.Nodes() != 0 {
				t.Fatalf("%s, cut short at call %d: %d blocks and %d nodes are left", c.Name, at, n, o.Nodes())
			}
			if !panicked {
				break
			}
		}
	}
}
