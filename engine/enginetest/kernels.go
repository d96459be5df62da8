// Package enginetest holds the suite that every backend's kernels must pass.
package enginetest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// Backend is one backend under test.
type Backend struct {
	Kernels engine.Kernels
	Driver  mem.Driver
	// Tolerance is the error allowed, relative to the larger of 1 and the expected
	// value, for operations that devices round differently; 0 means 1e-5.
	Tolerance float64
}

// RunKernels holds a backend against the reference kernels on random shapes,
// broadcasts, strides and offsets. fresh is called once a subtest.
func RunKernels(t *testing.T, fresh func(t *testing.T) Backend) {
	t.Helper()
	run := func(name string, rounds int, check func(s *suite)) {
		t.Run(name, func(t *testing.T) {
			s := newSuite(t, fresh(t))
			for range rounds {
				check(s)
			}
		})
	}
	run("fill reaches every element of a view and no other", 40, (*suite).fill)
	run("uniform numbers are the draw's, element by element", 10, (*suite).rand)
	run("bytes come back as they went", 10, (*suite).transfer)
	run("copies keep every bit, strided or not", 40, (*suite).copies)
	for op := range engine.UnaryOp(engine.NumUnary) {
		run("unary "+op.String(), 20, func(s *suite) { s.unary(op) })
	}
	for op := range engine.BinaryOp(engine.NumBinary) {
		run("binary "+op.String(), 30, func(s *suite) { s.binary(op) })
	}
	run("binary may write over an operand", 10, (*suite).inPlace)
	run("where", 20, (*suite).where)
	for op := range engine.ReduceOp(engine.NumReduce) {
		run("reduce "+op.String(), 60, func(s *suite) { s.reduce(op) })
	}
	run("matmul", 60, (*suite).matmul)
	run("views without elements are left as they are, and sum up to 0", 30, (*suite).empty)
	run("NaN, infinities and zeros of either sign", 20, (*suite).odd)
	run("gather and scatter-add", 30, (*suite).rows)
	run("an index outside its table is an error until sync returns it", 1, (*suite).outside)
	run("im2col and col2im", 60, (*suite).windows)
}

// operand is one tensor, held twice: on the backend and on the reference.
type operand struct{ got, want engine.View }

type suite struct {
	t         *testing.T
	b         Backend
	reference engine.Kernels
	host      mem.Driver
	rng       *rand.Rand
}

func newSuite(t *testing.T, b Backend) *suite {
	if b.Tolerance == 0 {
		b.Tolerance = 1e-5
	}
	return &suite{t: t, b: b, reference: cpu.Reference(), host: mem.Host(), rng: rand.New(rand.NewPCG(1, 2))}
}

// both runs one kernel on the backend and on the reference.
func (s *suite) both(f func(k engine.Kernels, side func(operand) engine.View)) {
	f(s.b.Kernels, func(o operand) engine.View { return o.got })
	f(s.reference, func(o operand) engine.View { return o.want })
}

// buffer takes memory of one driver for a test's life.
func (s *suite) buffer(d mem.Driver, bytes int) mem.Buffer {
	s.t.Helper()
	m, err := d.Allocate(int64(bytes))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := d.Free(m); err != nil {
			s.t.Error(err)
		}
	})
	return mem.Buffer{Memory: m, Size: int64(bytes)}
}

// lead is how many elements of a buffer lie before its block, so that a kernel
// that forgets the buffer's offset is found out: 256 bytes, as devices align.
const lead = 64

// contiguous makes a dense operand that holds the words, at an offset.
func (s *suite) contiguous(shape engine.Shape, words []uint32) operand {
	s.t.Helper()
	offset := s.rng.IntN(5)
	n := offset + len(words) + 3
	host := make([]byte, n*engine.ElementSize)
	for i := range n { // noise around the operand
		binary.LittleEndian.PutUint32(host[i*4:], math.Float32bits(-77.5))
	}
	for i, w := range words {
		binary.LittleEndian.PutUint32(host[(offset+i)*4:], w)
	}
	view := func(k engine.Kernels, d mem.Driver) engine.View {
		b := s.buffer(d, (lead+n)*engine.ElementSize)
		b.Offset, b.Size = lead*engine.ElementSize, int64(n*engine.ElementSize)
		k.Upload(engine.View{Buffer: b, Shape: engine.ShapeOf(n), Strides: engine.Strides{1}}, host)
		return engine.View{Buffer: b, Shape: shape, Strides: shape.RowMajor(), Offset: offset}
	}
	return operand{view(s.b.Kernels, s.b.Driver), view(s.reference, s.host)}
}

// floats makes a dense operand of random values in a range.
func (s *suite) floats(shape engine.Shape, low, high float32) operand {
	words := make([]uint32, shape.Elements())
	for i := range words {
		words[i] = math.Float32bits(low + (high-low)*s.rng.Float32())
	}
	return s.contiguous(shape, words)
}

// view makes an operand of a shape over a larger one: axes exchanged, rows
// skipped, and some axes repeated with a stride of 0.
func (s *suite) view(shape engine.Shape, low, high float32, repeat bool) operand {
	order := s.rng.Perm(shape.Rank)
	if s.rng.IntN(2) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	var stored engine.Shape
	stored.Rank = shape.Rank
	step := [engine.MaxRank]int{}
	repeated := [engine.MaxRank]bool{}
	for i, axis := range order {
		extent := shape.Dims[axis]
		step[axis] = 1
		switch s.rng.IntN(4) {
		case 0:
			if repeat {
				repeated[axis], extent = true, 1
			}
		case 1:
			step[axis], extent = 2, 2*extent
		}
		stored.Dims[i] = extent
	}
	o := s.floats(stored, low, high)
	strides := stored.RowMajor()
	set := func(v *engine.View) {
		dense := strides
		v.Shape, v.Strides = shape, engine.Strides{}
		for i, axis := range order {
			if !repeated[axis] {
				v.Strides[axis] = dense[i] * step[axis]
			}
		}
	}
	set(&o.got)
	set(&o.want)
	return o
}

// shape draws a shape of up to four axes; now and then one that is large enough
// to be split between threads.
func (s *suite) shape() engine.Shape {
	if s.rng.IntN(12) == 0 {
		return engine.ShapeOf(3, 180+s.rng.IntN(9), 150+s.rng.IntN(9))
	}
	dims := make([]int, s.rng.IntN(5))
	for i := range dims {
		dims[i] = 1 + s.rng.IntN(7)
	}
	return engine.ShapeOf(dims...)
}

// download reads the whole block that a view lies in.
func (s *suite) download(k engine.Kernels, v engine.View) []uint32 {
	n := int(v.Buffer.Size) / engine.ElementSize
	host := make([]byte, n*engine.ElementSize)
	k.Download(host, engine.View{Buffer: v.Buffer, Shape: engine.ShapeOf(n), Strides: engine.Strides{1}})
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(host[i*4:])
	}
	return words
}

// same compares the whole blocks, the noise around the view included. A
// tolerance of 0 asks for equal bits.
func (s *suite) same(o operand, tolerance float64) {
	s.t.Helper()
	if err := s.b.Kernels.Sync(); err != nil {
		s.t.Fatal(err)
	}
	got, want := s.download(s.b.Kernels, o.got), s.download(s.reference, o.want)
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		g, w := float64(math.Float32frombits(got[i])), float64(math.Float32frombits(want[i]))
		if math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if !(math.Abs(g-w) <= tolerance*max(1, math.Abs(w))) {
			s.t.Fatalf("word %d of the block of a %v view with strides %v at %d: got %g (%#x), want %g (%#x)",
				i, o.got.Shape, o.got.Strides, o.got.Offset, g, got[i], w, want[i])
		}
	}
}
