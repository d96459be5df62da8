package autodiff

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
)

// What makes, reads or writes tensors passes through: it has no gradient.

// Begin opens a scope; see engine.Ops.
func (o *Ops) Begin() *engine.Scope { return o.inner.Begin() }

// Device is where tensors live.
func (o *Ops) Device() *mem.Device { return o.inner.Device() }

// Valid is what computes without recording.
func (o *Ops) Valid() engine.Ops { return o.inner.Valid() }

// Sync waits for the device; see engine.Ops.
func (o *Ops) Sync() error { return o.inner.Sync() }

// Full fills a new tensor; see engine.Ops.
func (o *Ops) Full(value float32, dims ...int) *engine.Tensor { return o.inner.Full(value, dims...) }

// Rand makes uniform numbers; see engine.Ops.
func (o *Ops) Rand(d engine.Draw, dims ...int) *engine.Tensor { return o.inner.Rand(d, dims...) }

// FromFloats uploads host data; see engine.Ops.
func (o *Ops) FromFloats(data []float32, dims ...int) *engine.Tensor {
	return o.inner.FromFloats(data, dims...)
}

// FromInts uploads host data; see engine.Ops.
func (o *Ops) FromInts(data []int32, dims ...int) *engine.Tensor {
	return o.inner.FromInts(data, dims...)
}

// Floats brings the elements to the host; see engine.Ops.
func (o *Ops) Floats(a *engine.Tensor) []float32 { return o.inner.Floats(a) }

// Ints brings the elements to the host; see engine.Ops.
func (o *Ops) Ints(a *engine.Tensor) []int32 { return o.inner.Ints(a) }

// ArgMax has no gradient.
func (o *Ops) ArgMax(a *engine.Tensor, axis int) *engine.Tensor { return o.inner.ArgMax(a, axis) }

// Detach is a view without history.
func (o *Ops) Detach(a *engine.Tensor) *engine.Tensor { return o.inner.Detach(a) }

// Assign copies src into dst without a record, so outside NoGrad it panics with
// an *engine.Error if either is tracked: the gradient would be wrong in silence.
func (o *Ops) Assign(dst, src *engine.Tensor) {
	if o.tracked(dst, src) {
		panic(&engine.Error{Op: "assign", Shapes: []engine.Shape{dst.Shape(), src.Shape()},
			Reason: "a tracked tensor cannot be written, or written from, with a gradient; update parameters with Valid().Assign"})
	}
	o.inner.Assign(dst, src)
}

// Sum hands the gradient to every term.
func (o *Ops) Sum(a *engine.Tensor, axes ...int) *engine.Tensor {
	out := o.inner.Sum(a, axes...)
	if !o.tracked(a) {
		return o.plain("sum", out)
	}
	shape, ones := a.Shape(), folded(a.Shape(), axes)
	return o.record("sum", out, tensors{a}, nil, func(p *pass) {
		p.to(0, func() *engine.Tensor { return p.Expand(p.Reshape(p.grad, ones...), shape.Slice()...) })
	})
}

// folded is a shape with the axes named, or all if none are, of extent 1.
func folded(s engine.Shape, axes []int) []int {
	dims := s.Slice()
	for _, axis := range axes {
		dims[(axis+len(dims))%len(dims)] = 1
	}
	if len(axes) == 0 {
		for i := range dims {
			dims[i] = 1
		}
	}
	return dims
}

// MaxOver hands the gradient to the largest; equals share it. Where that is NaN,
// all that it was chosen from gets NaN.
func (o *Ops) MaxOver(a *engine.Tensor, axis int) *engine.Tensor {
	out := o.inner.MaxOver(a, axis)
	if !o.tracked(a) {
		return o.plain("max", out)
	}
	ones := folded(a.Shape(), []int{axis})
	return o.record("max", out, tensors{a}, tensors{a, out}, func(p *pass) {
		p.to(0, func() *engine.Tensor {
			largest := p.Equal(p.saved[0], p.Reshape(p.saved[1], ones...))
			count := p.Reshape(p.Sum(largest, axis), ones...)
			return p.Mul(largest, p.Div(p.Reshape(p.grad, ones...), count))
		})
	})
}

// MatMul has the derivatives g·bᵀ and aᵀ·g.
func (o *Ops) MatMul(a, b *engine.Tensor) *engine.Tensor {
	out := o.inner.MatMul(a, b)
	if !o.tracked(a, b) {
		return o.plain("matmul", out)
	}
	shapeA, shapeB := a.Shape(), b.Shape()
	return o.record("matmul", out, tensors{a, b}, tensors{onlyIf(Tracked(b), a), onlyIf(Tracked(a), b)}, func(p *pass) {
		p.to(0, func() *engine.Tensor { return engine.SumTo(p, p.MatMul(p.grad, transpose(p, p.saved[1])), shapeA) })
		p.to(1, func() *engine.Tensor {
			x, g := p.saved[0], p.grad
			if shapeB.Rank == 2 && shapeA.Rank > 2 { // one product, not the sum of a batch of them
				x, g = flat(p, x), flat(p, g)
			}
			return engine.SumTo(p, p.MatMul(transpose(p, x), g), shapeB)
		})
	})
}

// flat sees a batch of matrices as one.
func flat(o engine.Ops, t *engine.Tensor) *engine.Tensor {
	last := t.Shape().Rank - 1
	return o.Reshape(t, t.Shape().With(last, 1).Elements(), t.Dim(last))
}

// transpose exchanges the two innermost axes.
func transpose(o engine.Ops, t *engine.Tensor) *engine.Tensor {
	order := make([]int, t.Shape().Rank)
	for i := range order {
		order[i] = i
	}
	last := len(order) - 1
	order[last-1], order[last] = last, last-1
	return o.Permute(t, order...)
}

// LogSoftmax has the derivative g - softmax·Σg.
func (o *Ops) LogSoftmax(a *engine.Tensor) *engine.Tensor {
	out := o.inner.LogSoftmax(a)
	return o.unary("log-softmax", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return engine.LogSoftmaxGrad(p.Ops, g, y)
	})
}

// Copy passes the gradient.
func (o *Ops) Copy(a *engine.Tensor) *engine.Tensor {
	return o.unary("copy", a, o.inner.Copy(a), nil, func(_ *pass, g, _ *engine.Tensor) *engine.Tensor { return g })
}

// Reshape shapes the gradient back.
func (o *Ops) Reshape(a *engine.Tensor, dims ...int) *engine.Tensor {
	shape := a.Shape()
	return o.unary("reshape", a, o.inner.Reshape(a, dims...), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor {
		return p.Reshape(g, shape.Slice()...)
	})
}

// Permute puts the gradient's axes back.
func (o *Ops) Permute(a *engine.Tensor, order ...int) *engine.Tensor {
	out := o.inner.Permute(a, order...)
	back := make([]int, len(order))
	for i, axis := range order {
		back[(axis+len(order))%len(order)] = i
	}
	return o.unary("permute", a, out, nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor { return p.Permute(g, back...) })
}

// Slice puts the gradient between zeros.
func (o *Ops) Slice(a *engine.Tensor, axis, from, to int) *engine.Tensor {
	shape := a.Shape()
	return o.unary("slice", a, o.inner.Slice(a, axis, from, to), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor {
		at := (axis + shape.Rank) % shape.Rank
		zeros := func(n int) *engine.Tensor { return p.Expand(p.Full(0), shape.With(at, n).Slice()...) }
		return p.Concat(at, zeros(from), g, zeros(shape.Dims[at]-to)) // not Assign, which has no gradient
	})
}

// Expand adds the gradient of the copies up.
func (o *Ops) Expand(a *engine.Tensor, dims ...int) *engine.Tensor {
	shape := a.Shape()
	return o.unary("expand", a, o.inner.Expand(a, dims...), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor {
		return engine.SumTo(p, g, shape)
	})
}

// Concat hands each part its slice of the gradient.
func (o *Ops) Concat(axis int, parts ...*engine.Tensor) *engine.Tensor {
	out := o.inner.Concat(axis, parts...)
	if !o.tracked(parts...) {
		return o.plain("concat", out)
	}
	extents := make([]int, len(parts))
	for i, t := range parts {
		extents[i] = t.Dim(axis)
	}
	return o.record("concat", out, parts, nil, func(p *pass) {
		from := 0
		for i, n := range extents {
			p.to(i, func() *engine.Tensor { return p.Slice(p.grad, axis, from, from+n) })
			from += n
		}
	})
}

// Gather adds the gradient up by rows.
func (o *Ops) Gather(table, index *engine.Tensor) *engine.Tensor {
	rows := table.Shape().Dims[0]
	return o.unary("gather", table, o.inner.Gather(table, index), index, func(p *pass, g, index *engine.Tensor) *engine.Tensor {
		return p.ScatterAdd(g, index, rows)
	})
}

// ScatterAdd picks the gradient's rows.
func (o *Ops) ScatterAdd(src, index *engine.Tensor, rows int) *engine.Tensor {
	return o.unary("scatter-add", src, o.inner.ScatterAdd(src, index, rows), index, func(p *pass, g, index *engine.Tensor) *engine.Tensor {
		return p.Gather(g, index)
	})
}

// Unfold folds the gradient.
func (o *Ops) Unfold(x *engine.Tensor, w engine.Window) *engine.Tensor {
	shape := x.Shape()
	return o.unary("unfold", x, o.inner.Unfold(x, w), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor {
		return p.Fold(g, w, shape.Dims[1], shape.Dims[2], shape.Dims[3])
	})
}

// Fold unfolds the gradient.
func (o *Ops) Fold(columns *engine.Tensor, w engine.Window, c, h, wd int) *engine.Tensor {
	return o.unary("fold", columns, o.inner.Fold(columns, w, c, h, wd), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor {
		return p.Unfold(g, w)
	})
}

// Conv2d makes the columns of x again in backward: they are kh·kw times x, too
// much to keep.
func (o *Ops) Conv2d(x, filters *engine.Tensor, w engine.Window) *engine.Tensor {
	if out, _, ok := o.Fuse(engine.Convolution{Window: w}, x, filters); ok {
		return out
	}
	out := o.inner.Conv2d(x, filters, w)
	if !o.tracked(x, filters) {
		return o.plain("conv2d", out)
	}
	image, bank, result := x.Shape(), filters.Shape(), out.Shape()
	rows := []int{bank.Dims[0], bank.Elements() / max(bank.Dims[0], 1)}
	return o.record("conv2d", out, tensors{x, filters}, tensors{onlyIf(Tracked(filters), x), onlyIf(Tracked(x), filters)}, func(p *pass) {
		g := p.Reshape(p.grad, result.Dims[0], result.Dims[1], result.Dims[2]*result.Dims[3])
		p.to(0, func() *engine.Tensor {
			columns := p.MatMul(transpose(p, p.Reshape(p.saved[1], rows...)), g)
			return p.Fold(columns, w, image.Dims[1], image.Dims[2], image.Dims[3])
		})
		p.to(1, func() *engine.Tensor {
			each := p.MatMul(g, transpose(p, p.Unfold(p.saved[0], w)))
			return p.Reshape(p.Sum(each, 0), bank.Slice()...)
		})
	})
}
