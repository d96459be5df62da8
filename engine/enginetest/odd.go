package enginetest

import (
	"math"
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
)

// oddNumbers are those that comparisons, limits and sums of products go wrong on.
func oddNumbers() []float32 {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	return []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1))}
}

// sprinkled returns x, or now and then an odd number.
func sprinkled(rng *rand.Rand, x float32) float32 {
	numbers := oddNumbers()
	if i := rng.IntN(8 * len(numbers)); i < len(numbers) {
		return numbers[i]
	}
	return x
}

// oddView is a view of whole numbers, so that there are equals, with odd ones among
// them; now and then all are odd.
func (s *suite) oddView(shape engine.Shape) operand {
	o := s.view(shape, -3.4, 3.4, true)
	s.round(o)
	numbers := oddNumbers()
	all := s.rng.IntN(6) == 0
	s.change(o, func(x float32) float32 {
		if all {
			return numbers[s.rng.IntN(len(numbers))]
		}
		return sprinkled(s.rng, x)
	})
	return o
}

// odd runs what computes element by element, folds or multiplies on odd numbers.
// Pow is left out: what it makes of them, devices do not agree on.
func (s *suite) odd() {
	shape := s.shape()
	a, b, c, dst := s.oddView(shape), s.oddView(shape), s.oddView(shape), s.view(shape, 0, 1, false)
	for op := range engine.UnaryOp(engine.NumUnary) {
		s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Unary(op, v(dst), v(a)) })
		s.same(dst, s.b.Tolerance)
	}
	for op := range engine.BinaryOp(engine.NumBinary) {
		if op == engine.Pow {
			continue
		}
		s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Binary(op, v(dst), v(a), v(b)) })
		s.same(dst, s.b.Tolerance)
	}
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Where(v(dst), v(c), v(a), v(b)) })
	s.same(dst, 0)
	for op := range engine.ReduceOp(engine.NumReduce) {
		folded := s.folded(op, shape)
		to := s.floats(folded, 0, 1)
		s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Reduce(op, v(to), v(a)) })
		s.same(to, s.foldTolerance(op, shape))
	}
	m, k, n := 1+s.rng.IntN(20), s.rng.IntN(24), 1+s.rng.IntN(20)
	left, right := s.oddView(engine.ShapeOf(1, m, k)), s.oddView(engine.ShapeOf(1, k, n))
	product := s.floats(engine.ShapeOf(1, m, n), 5, 6)
	s.both(func(kn engine.Kernels, v func(operand) engine.View) { kn.MatMul(v(product), v(left), v(right)) })
	s.same(product, s.b.Tolerance)
}

// empty runs the kernels on views without elements.
func (s *suite) empty() {
	shape := engine.ShapeOf(1+s.rng.IntN(4), 1+s.rng.IntN(4), 1+s.rng.IntN(4))
	shape.Dims[s.rng.IntN(shape.Rank)] = 0
	a, b, c, dst := s.view(shape, -3, 3, true), s.view(shape, -3, 3, true), s.view(shape, -3, 3, true), s.view(shape, 0, 1, false)
	s.both(func(k engine.Kernels, v func(operand) engine.View) {
		k.Fill(v(dst), 1)
		k.CopyStrided(v(dst), v(a))
		k.Unary(engine.Exp, v(dst), v(a))
		k.Binary(engine.Add, v(dst), v(a), v(b))
		k.Where(v(dst), v(c), v(a), v(b))
	})
	s.same(dst, 0)
	sum := s.floats(s.folded(engine.ReduceSum, shape), 5, 6)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.Reduce(engine.ReduceSum, v(sum), v(a)) })
	s.same(sum, 0)
	m, n := s.rng.IntN(3), s.rng.IntN(3)
	left, right := s.view(engine.ShapeOf(1, m, 0), 0, 1, true), s.view(engine.ShapeOf(1, 0, n), 0, 1, true)
	product := s.floats(engine.ShapeOf(1, m, n), 5, 6)
	s.both(func(k engine.Kernels, v func(operand) engine.View) { k.MatMul(v(product), v(left), v(right)) })
	s.same(product, 0)
	index, table, rows := s.indices(0, 1), s.floats(engine.ShapeOf(3, n), 0, 1), s.floats(engine.ShapeOf(0, n), 0, 1)
	s.both(func(k engine.Kernels, v func(operand) engine.View) {
		k.Gather(v(rows), v(table), v(index))
		k.ScatterAdd(v(table), v(index), v(rows))
	})
	s.same(rows, 0)
	s.same(table, 0)
}
