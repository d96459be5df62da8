package enginetest

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"

	"github.com/memdiag/memdiag/engine"
)

func (s *suite) fill() {
	dst := s.view(s.shape(), -1, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Fill(v(dst), 2.25) })
	s.same(dst, 0)
}

func (s *suite) rand() {
	dst := s.floats(s.shape(), 0, 0)
	d := engine.Draw{Key: s.rng.Uint64(), Stream: s.rng.Uint64()}
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Rand(v(dst), d) })
	s.same(dst, 0)
}

func (s *suite) transfer() {
	dst := s.floats(s.shape(), 0, 1)
	n := dst.got.Shape.Elements()
	src := make([]byte, n*engine.ElementSize)
	for i := range n { // any bits, NaNs with payloads among them
		binary.LittleEndian.PutUint32(src[i*4:], s.rng.Uint32()|0x7f800000*uint32(i%2))
	}
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Upload(v(dst), src) })
	s.same(dst, 0)
	back := make([]byte, len(src))
	s.b.Kernels.Download(back, dst.got)
	if !bytes.Equal(back, src) {
		s.t.Fatalf("%v: other bytes came back", dst.got.Shape)
	}
}

func (s *suite) copies() {
	shape := s.shape()
	src, dst := s.view(shape, -5, 5, true), s.view(shape, 0, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.CopyStrided(v(dst), v(src)) })
	s.same(dst, 0)
	dense, to := s.floats(shape, -5, 5), s.floats(shape, 0, 1)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Copy(v(to), v(dense)) })
	s.same(to, 0)
}

func (s *suite) unary(op engine.UnaryOp) {
	shape := s.shape()
	low := float32(-4)
	if op == engine.Log || op == engine.Sqrt || op == engine.Recip {
		low = 0.05
	}
	a, dst := s.view(shape, low, 4, true), s.view(shape, 0, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Unary(op, v(dst), v(a)) })
	s.same(dst, s.b.Tolerance)
}

// pair draws operands for a binary operation: for comparisons, whole numbers,
// so that ties happen; for powers, a base above 0.
func (s *suite) pair(op engine.BinaryOp, shape engine.Shape) (a, b operand) {
	switch op {
	case engine.Less, engine.Equal:
		draw := func() operand {
			o := s.view(shape, -1.4, 1.4, true)
			s.round(o)
			return o
		}
		return draw(), draw()
	case engine.Pow:
		return s.view(shape, 0.1, 3, true), s.view(shape, -2, 3, true)
	case engine.Div:
		return s.view(shape, -3, 3, true), s.view(shape, 0.2, 3, true)
	}
	return s.view(shape, -3, 3, true), s.view(shape, -3, 3, true)
}

// round makes whole numbers of a block.
func (s *suite) round(o operand) {
	s.change(o, func(x float32) float32 { return float32(math.RoundToEven(float64(x))) })
}

// change maps every element of a block.
func (s *suite) change(o operand, f func(float32) float32) {
	words := s.download(s.reference, o.want)
	host := make([]byte, len(words)*engine.ElementSize)
	for i, w := range words {
		binary.LittleEndian.PutUint32(host[i*4:], math.Float32bits(f(math.Float32frombits(w))))
	}
	s.both(func(k engine.Kernels, v func(operand) engine.View) {
		k.Upload(engine.View{Buffer: v(o).Buffer, Shape: engine.ShapeOf(len(words)), Strides: engine.Strides{1}}, host)
	})
}

func (s *suite) binary(op engine.BinaryOp) {
	shape := s.shape()
	a, b := s.pair(op, shape)
	dst := s.view(shape, 0, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Binary(op, v(dst), v(a), v(b)) })
	s.same(dst, s.b.Tolerance)
}

func (s *suite) inPlace() {
	shape := s.shape()
	a, b := s.view(shape, -3, 3, false), s.view(shape, -3, 3, true)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Binary(engine.Sub, v(a), v(a), v(b)) })
	s.same(a, s.b.Tolerance)
}

func (s *suite) where() {
	shape := s.shape()
	cond := s.view(shape, -1, 1, true)
	s.round(cond)
	a, b, dst := s.view(shape, -3, 3, true), s.view(shape, -3, 3, true), s.view(shape, 0, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Where(v(dst), v(cond), v(a), v(b)) })
	s.same(dst, 0)
}

// folded draws the shape of a reduction's result.
func (s *suite) folded(op engine.ReduceOp, shape engine.Shape) engine.Shape {
	if shape.Rank > 0 && op == engine.ReduceArgMax {
		return shape.With(s.rng.IntN(shape.Rank), 1)
	}
	for axis := range shape.Rank {
		if s.rng.IntN(2) == 0 {
			shape.Dims[axis] = 1
		}
	}
	return shape
}

func (s *suite) reduce(op engine.ReduceOp) {
	shape := s.shape()
	a, dst := s.view(shape, -3, 3, true), s.floats(s.folded(op, shape), 0, 1)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Reduce(op, v(dst), v(a)) })
	s.same(dst, s.foldTolerance(op, shape))
}

// foldTolerance is 0 but for sums, where float32 lanes lose digits with the length.
func (s *suite) foldTolerance(op engine.ReduceOp, shape engine.Shape) float64 {
	if op != engine.ReduceSum {
		return 0
	}
	return s.b.Tolerance * max(1, math.Sqrt(float64(shape.Elements())))
}

func (s *suite) matmul() {
	batch, m, k, n := 1+s.rng.IntN(3), 1+s.rng.IntN(20), s.rng.IntN(24), 1+s.rng.IntN(20)
	if s.rng.IntN(10) == 0 { // past the edges of blocks, as long as the reference is bearable
		batch, m, k, n = 1, 5+s.rng.IntN(10), 500+s.rng.IntN(40), 120+s.rng.IntN(20)
	}
	a := s.view(engine.ShapeOf(batch, m, k), -1, 1, true)
	b := s.view(engine.ShapeOf(batch, k, n), -1, 1, true)
	dst := s.floats(engine.ShapeOf(batch, m, n), 5, 6)
	s.both(func(kn engine.Kernels, v func(operand) engine.View) { kn.MatMul(v(dst), v(a), v(b)) })
	s.same(dst, s.b.Tolerance*max(1, math.Sqrt(float64(k))))
}

// indices makes m indices below rows, some twice.
func (s *suite) indices(m, rows int) operand {
	words := make([]uint32, m)
	for i := range words {
		words[i] = uint32(s.rng.IntN(rows))
	}
	return s.contiguous(engine.ShapeOf(m), words)
}

func (s *suite) rows() {
	m, rows, width := 1+s.rng.IntN(30), 1+s.rng.IntN(12), 1+s.rng.IntN(9)
	index := s.indices(m, rows)
	table, picked := s.view(engine.ShapeOf(rows, width), -2, 2, true), s.floats(engine.ShapeOf(m, width), 0, 1)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Gather(v(picked), v(table), v(index)) })
	s.same(picked, 0)
	sum, src := s.floats(engine.ShapeOf(rows, width), -1, 1), s.view(engine.ShapeOf(m, width), -2, 2, true)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.ScatterAdd(v(sum), v(index), v(src)) })
	s.same(sum, s.b.Tolerance)
}

func (s *suite) outside() {
	index := s.contiguous(engine.ShapeOf(3), []uint32{0, 5, 1})
	table, dst := s.floats(engine.ShapeOf(4, 2), 0, 1), s.floats(engine.ShapeOf(3, 2), 0, 1)
	s.b.Kernels.Gather(dst.got, table.got, index.got)
	err := s.b.Kernels.Sync()
	if err == nil || !strings.Contains(err.Error(), "5") {
		s.t.Fatalf("an index of 5 in a table of 4 rows gave the error %v", err)
	}
	if err := s.b.Kernels.Sync(); err != nil {
		s.t.Fatalf("a second sync still gives %v", err)
	}
}

func (s *suite) windows() {
	w := engine.Window{
		Kernel: [2]int{1 + s.rng.IntN(4), 1 + s.rng.IntN(4)},
		Stride: [2]int{1 + s.rng.IntN(3), 1 + s.rng.IntN(3)},
		Pad:    [2]int{s.rng.IntN(4), s.rng.IntN(4)},
	}
	n, c, h, wd := 1+s.rng.IntN(3), 1+s.rng.IntN(4), 4+s.rng.IntN(9), 4+s.rng.IntN(9)
	oh, ow := w.Out(h, wd)
	image, columns := engine.ShapeOf(n, c, h, wd), engine.ShapeOf(n, c*w.Kernel[0]*w.Kernel[1], oh*ow)
	src, dst := s.view(image, -2, 2, true), s.floats(columns, 5, 6)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Im2Col(v(dst), v(src), w) })
	s.same(dst, 0)
	from, sum := s.floats(columns, -2, 2), s.floats(image, 5, 6)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Col2Im(v(sum), v(from), w) })
	s.same(sum, s.b.Tolerance)
}
