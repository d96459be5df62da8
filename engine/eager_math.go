package engine

import "fmt"

func (e *Eager) unary(op UnaryOp, a *Tensor) *Tensor {
	e.check(op.String(), a)
	typed(op.String(), Float32, a)
	out := e.alloc(op.String(), Float32, a.shape)
	e.kernels.Unary(op, out.view(), a.view())
	return out
}

// Neg is -a; see Ops.
func (e *Eager) Neg(a *Tensor) *Tensor { return e.unary(Neg, a) }

// Exp is e to the a; see Ops.
func (e *Eager) Exp(a *Tensor) *Tensor { return e.unary(Exp, a) }

// Log is the natural logarithm; see Ops.
func (e *Eager) Log(a *Tensor) *Tensor { return e.unary(Log, a) }

// Sqrt is the square root; see Ops.
func (e *Eager) Sqrt(a *Tensor) *Tensor { return e.unary(Sqrt, a) }

// Recip is 1/a; see Ops.
func (e *Eager) Recip(a *Tensor) *Tensor { return e.unary(Recip, a) }

// Abs is the magnitude; see Ops.
func (e *Eager) Abs(a *Tensor) *Tensor { return e.unary(Abs, a) }

// ReLU is the larger of a and 0; see Ops.
func (e *Eager) ReLU(a *Tensor) *Tensor { return e.unary(ReLU, a) }

// Tanh is the hyperbolic tangent; see Ops.
func (e *Eager) Tanh(a *Tensor) *Tensor { return e.unary(Tanh, a) }

// Sigmoid is 1/(1+exp(-a)); see Ops.
func (e *Eager) Sigmoid(a *Tensor) *Tensor { return e.unary(Sigmoid, a) }

// stretched returns the operand's view as one of a larger shape.
func stretched(t *Tensor, shape Shape) View {
	v := t.view()
	v.Strides, _ = stretch(t.shape, t.strides, shape)
	v.Shape = shape
	return v
}

func (e *Eager) binary(op BinaryOp, a, b *Tensor) *Tensor {
	e.check(op.String(), a, b)
	typed(op.String(), Float32, a, b)
	shape, ok := Broadcast(a.shape, b.shape)
	if !ok {
		fail(op.String(), "the shapes do not broadcast: extents must be equal or 1", a, b)
	}
	out := e.alloc(op.String(), Float32, shape)
	e.kernels.Binary(op, out.view(), stretched(a, shape), stretched(b, shape))
	return out
}

// Add is a + b; see Ops.
func (e *Eager) Add(a, b *Tensor) *Tensor { return e.binary(Add, a, b) }

// Sub is a - b; see Ops.
func (e *Eager) Sub(a, b *Tensor) *Tensor { return e.binary(Sub, a, b) }

// Mul is a·b; see Ops.
func (e *Eager) Mul(a, b *Tensor) *Tensor { return e.binary(Mul, a, b) }

// Div is a/b; see Ops.
func (e *Eager) Div(a, b *Tensor) *Tensor { return e.binary(Div, a, b) }

// Max is the larger; see Ops.
func (e *Eager) Max(a, b *Tensor) *Tensor { return e.binary(Max, a, b) }

// Pow is a to the b; see Ops.
func (e *Eager) Pow(a, b *Tensor) *Tensor { return e.binary(Pow, a, b) }

// Less is 1 where a < b, else 0; see Ops.
func (e *Eager) Less(a, b *Tensor) *Tensor { return e.binary(Less, a, b) }

// Equal is 1 where a = b, else 0; see Ops.
func (e *Eager) Equal(a, b *Tensor) *Tensor { return e.binary(Equal, a, b) }

// Where chooses element by element; see Ops.
func (e *Eager) Where(cond, a, b *Tensor) *Tensor {
	e.check("where", cond, a, b)
	typed("where", Float32, cond, a, b)
	shape, ok := Broadcast(a.shape, b.shape)
	if ok {
		shape, ok = Broadcast(shape, cond.shape)
	}
	if !ok {
		fail("where", "the shapes do not broadcast: extents must be equal or 1", cond, a, b)
	}
	out := e.alloc("where", Float32, shape)
	e.kernels.Where(out.view(), stretched(cond, shape), stretched(a, shape), stretched(b, shape))
	return out
}

// reduce folds the marked axes and drops them from the shape.
func (e *Eager) reduce(op ReduceOp, t DType, a *Tensor, folded [MaxRank]bool) *Tensor {
	ones, dropped := a.shape, Shape{}
	for axis, d := range a.shape.Dims[:a.shape.Rank] {
		if folded[axis] {
			ones.Dims[axis] = 1
			continue
		}
		dropped.Dims[dropped.Rank] = d
		dropped.Rank++
	}
	out := e.alloc(op.String(), t, dropped)
	v := out.view()
	v.Shape, v.Strides = ones, ones.RowMajor()
	e.kernels.Reduce(op, v, a.view())
	return out
}

// Sum folds axes; see Ops.
func (e *Eager) Sum(a *Tensor, axes ...int) *Tensor {
	e.check("sum", a)
	typed("sum", Float32, a)
	var folded [MaxRank]bool
	for _, axis := range axes {
		folded[a.axis("sum", axis)] = true
	}
	if len(axes) == 0 {
		folded = [MaxRank]bool{true, true, true, true, true, true}
	}
	return e.reduce(ReduceSum, Float32, a, folded)
}

// MaxOver folds an axis; see Ops.
func (e *Eager) MaxOver(a *Tensor, axis int) *Tensor { return e.over(ReduceMax, Float32, a, axis) }

// ArgMax folds an axis; see Ops.
func (e *Eager) ArgMax(a *Tensor, axis int) *Tensor { return e.over(ReduceArgMax, Int32, a, axis) }

func (e *Eager) over(op ReduceOp, t DType, a *Tensor, axis int) *Tensor {
	e.check(op.String(), a)
	typed(op.String(), Float32, a)
	at := a.axis(op.String(), axis)
	if a.shape.Dims[at] == 0 {
		fail(op.String(), fmt.Sprintf("axis %d is empty", axis), a)
	}
	var folded [MaxRank]bool
	folded[at] = true
	return e.reduce(op, t, a, folded)
}

// MatMul multiplies matrices; see Ops.
func (e *Eager) MatMul(a, b *Tensor) *Tensor {
	const op = "matmul"
	e.check(op, a, b)
	typed(op, Float32, a, b)
	ra, rb := a.shape.Rank, b.shape.Rank
	if ra < 2 || rb < 2 || a.shape.Dims[ra-1] != b.shape.Dims[rb-2] {
		fail(op, "[… m k] and [… k n] are needed, with equal k", a, b)
	}
	batch, ok := Broadcast(leading(a.shape), leading(b.shape))
	if !ok {
		fail(op, "the leading axes do not broadcast", a, b)
	}
	m, k, n := a.shape.Dims[ra-2], a.shape.Dims[ra-1], b.shape.Dims[rb-1]
	out := e.alloc(op, Float32, matrices(batch, m, n))
	v := out.view()
	v.Shape = ShapeOf(batch.Elements(), m, n)
	v.Strides = v.Shape.RowMajor()
	left, doneLeft := e.stack(a, batch, m, k)
	defer doneLeft()
	right, doneRight := e.stack(b, batch, k, n)
	defer doneRight()
	e.kernels.MatMul(v, left, right)
	return out
}

// leading is the shape without its two innermost axes.
func leading(s Shape) Shape {
	s.Rank -= 2
	s.Dims[s.Rank], s.Dims[s.Rank+1] = 0, 0
	return s
}

// matrices is the shape of a batch of matrices.
func matrices(batch Shape, rows, columns int) Shape {
	batch.Dims[batch.Rank], batch.Dims[batch.Rank+1] = rows, columns
	batch.Rank += 2
	batch.bounded("shape")
	return batch
}

// stack sees a tensor as [batch rows columns], stretching its leading axes. Only
// where those do not lie evenly is it copied first; done releases the copy.
func (e *Eager) stack(t *Tensor, batch Shape, rows, columns int) (v View, done func()) {
	full := matrices(batch, rows, columns)
	v = stretched(t, full)
	done = func() {}
	step, even := evenly(batch, v.Strides)
	if !even {
		wide := e.window(t, full, v.Strides, t.offset)
		dense := e.Copy(wide)
		wide.Release()
		done = dense.Release
		v, step = dense.view(), rows*columns
	}
	v.Strides = Strides{step, v.Strides[batch.Rank], v.Strides[batch.Rank+1]}
	v.Shape = ShapeOf(batch.Elements(), rows, columns)
	return v, done
}

// evenly finds the one stride that walks all axes of a shape in order.
func evenly(s Shape, st Strides) (step int, ok bool) {
	known, next := false, 0
	for axis := s.Rank - 1; axis >= 0; axis-- {
		if s.Dims[axis] == 1 {
			continue
		}
		if known && st[axis] != next {
			return 0, false
		}
		if !known {
			step, known = st[axis], true
		}
		next = st[axis] * s.Dims[axis]
	}
	return step, true
}

// LogSoftmax normalises the innermost axis; see Ops. The largest element is
// taken off first, so that no exponential overflows.
func (e *Eager) LogSoftmax(a *Tensor) *Tensor {
	e.check("log-softmax", a)
	if a.shape.Rank == 0 {
		fail("log-softmax", "a scalar has no axis to normalise", a)
	}
	column := a.shape.With(a.shape.Rank-1, 1).Slice()
	return Tidy(e, func() *Tensor {
		if e.fused != nil {
			typed("log-softmax", Float32, a)
			v := e.packed(a)
			out := e.alloc("log-softmax", Float32, a.shape)
			if out.shape.Elements() > 0 { // of nothing there may be very many rows
				e.fused.LogSoftmax(rowsOf(out.view()), rowsOf(v[0]))
			}
			return out
		}
		shifted := e.Sub(a, e.Reshape(e.MaxOver(a, -1), column...))
		total := e.Log(e.Sum(e.Exp(shifted), -1))
		return e.Sub(shifted, e.Reshape(total, column...))
	})
}
