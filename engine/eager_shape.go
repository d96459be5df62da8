package engine

import "fmt"

// Copy is a contiguous copy; see Ops.
func (e *Eager) Copy(a *Tensor) *Tensor {
	e.check("copy", a)
	out := e.alloc("copy", a.dtype, a.shape)
	e.copyInto(out.view(), a.view())
	return out
}

func (e *Eager) copyInto(dst, src View) {
	if dst.Contiguous() && src.Contiguous() {
		e.kernels.Copy(dst, src)
		return
	}
	e.kernels.CopyStrided(dst, src)
}

// Detach is a view without history; see Ops.
func (e *Eager) Detach(a *Tensor) *Tensor {
	e.check("detach", a)
	return e.window(a, a.shape, a.strides, a.offset)
}

// Reshape keeps the elements in order; see Ops.
func (e *Eager) Reshape(a *Tensor, dims ...int) *Tensor {
	e.check("reshape", a)
	shape := ShapeOf(dims...)
	if shape.Elements() != a.shape.Elements() {
		fail("reshape", fmt.Sprintf("%v has %d elements, not %d", shape, shape.Elements(), a.shape.Elements()), a)
	}
	d := e.dense(a)
	defer e.drop(d, a)
	return e.window(d, shape, shape.RowMajor(), d.offset)
}

// Permute reorders the axes; see Ops.
func (e *Eager) Permute(a *Tensor, order ...int) *Tensor {
	e.check("permute", a)
	var seen [MaxRank]bool
	shape, strides := Shape{Rank: a.shape.Rank}, Strides{}
	if len(order) != a.shape.Rank {
		fail("permute", fmt.Sprintf("%v does not name every axis once", order), a)
	}
	for i, axis := range order {
		at := a.axis("permute", axis)
		if seen[at] {
			fail("permute", fmt.Sprintf("%v does not name every axis once", order), a)
		}
		seen[at] = true
		shape.Dims[i], strides[i] = a.shape.Dims[at], a.strides[at]
	}
	return e.window(a, shape, strides, a.offset)
}

// Slice takes a range of one axis; see Ops.
func (e *Eager) Slice(a *Tensor, axis, from, to int) *Tensor {
	e.check("slice", a)
	at := a.axis("slice", axis)
	if from < 0 || from > to || to > a.shape.Dims[at] {
		fail("slice", fmt.Sprintf("[%d, %d) does not lie within axis %d", from, to, axis), a)
	}
	return e.window(a, a.shape.With(at, to-from), a.strides, a.offset+from*a.strides[at])
}

// Expand stretches axes; see Ops.
func (e *Eager) Expand(a *Tensor, dims ...int) *Tensor {
	e.check("expand", a)
	shape := ShapeOf(dims...)
	strides, ok := stretch(a.shape, a.strides, shape)
	if !ok {
		fail("expand", fmt.Sprintf("it does not stretch to %v: only axes of extent 1 do", shape), a)
	}
	return e.window(a, shape, strides, a.offset)
}

// Concat joins tensors; see Ops.
func (e *Eager) Concat(axis int, parts ...*Tensor) *Tensor {
	if len(parts) == 0 {
		panic(&Error{Op: "concat", Reason: "there is nothing to join"})
	}
	e.check("concat", parts...)
	first := parts[0]
	at := first.axis("concat", axis)
	typed("concat", first.dtype, parts...)
	total := 0
	for _, p := range parts {
		if p.shape.Rank != first.shape.Rank || p.shape.With(at, 0) != first.shape.With(at, 0) {
			fail("concat", fmt.Sprintf("the parts differ in another axis than %d", axis), parts...)
		}
		total += p.shape.Dims[at]
	}
	out := e.alloc("concat", first.dtype, first.shape.With(at, total))
	from := 0
	for _, p := range parts {
		v := out.view()
		v.Shape = p.shape
		v.Offset += from * v.Strides[at]
		e.copyInto(v, p.view())
		from += p.shape.Dims[at]
	}
	return out
}

// Assign copies into dst; see Ops.
func (e *Eager) Assign(dst, src *Tensor) {
	e.check("assign", dst, src)
	typed("assign", dst.dtype, src)
	if !stretches(src.shape, dst.shape) {
		fail("assign", "the second does not stretch to the first", dst, src)
	}
	dst.distinct("assign")
	if same := dst.shape == src.shape && dst.strides == src.strides && dst.offset == src.offset; !same && shares(dst, src) {
		apart := e.Copy(src)
		defer apart.Release()
		src = apart
	}
	e.copyInto(dst.view(), stretched(src, dst.shape))
	dst.storage.Wrote()
}

// distinct panics if elements of a tensor that is to be written are one in memory.
func (t *Tensor) distinct(op string) {
	if t.shape.Elements() == 0 {
		return
	}
	for axis, d := range t.shape.Dims[:t.shape.Rank] {
		if d > 1 && t.strides[axis] == 0 {
			fail(op, fmt.Sprintf("axis %d repeats one element, as Expand makes it; write to what was expanded", axis), t)
		}
	}
}

// shares reports whether two tensors with elements lie in each other's part of a
// block. They need not have an element in common: rows may take turns.
func shares(a, b *Tensor) bool {
	return a.storage == b.storage && a.offset <= b.last() && b.offset <= a.last()
}

// last is the offset of the last element, of one that has any.
func (t *Tensor) last() int {
	at := t.offset
	for axis, d := range t.shape.Dims[:t.shape.Rank] {
		at += (d - 1) * t.strides[axis]
	}
	return at
}

// Gather picks rows; see Ops.
func (e *Eager) Gather(table, index *Tensor) *Tensor {
	e.check("gather", table, index)
	typed("gather", Float32, table)
	typed("gather", Int32, index)
	if table.shape.Rank != 2 || index.shape.Rank != 1 {
		fail("gather", "a table [r d] and an index [m] are needed", table, index)
	}
	out := e.alloc("gather", Float32, ShapeOf(index.shape.Dims[0], table.shape.Dims[1]))
	e.kernels.Gather(out.view(), table.view(), index.view())
	return out
}

// ScatterAdd adds rows up; see Ops.
func (e *Eager) ScatterAdd(src, index *Tensor, rows int) *Tensor {
	e.check("scatter-add", src, index)
	typed("scatter-add", Float32, src)
	typed("scatter-add", Int32, index)
	if src.shape.Rank != 2 || index.shape.Rank != 1 || src.shape.Dims[0] != index.shape.Dims[0] {
		fail("scatter-add", "rows [m d] and an index [m] are needed", src, index)
	}
	out := e.alloc("scatter-add", Float32, ShapeOf(rows, src.shape.Dims[1]))
	e.kernels.Fill(out.view(), 0)
	e.kernels.ScatterAdd(out.view(), index.view(), src.view())
	return out
}

// pixel is the window under which every pixel is its own patch, so that columns
// are the image seen otherwise.
var pixel = Square(1, 1, 0)

// Unfold makes columns of patches; see Ops.
func (e *Eager) Unfold(x *Tensor, w Window) *Tensor {
	e.check("unfold", x)
	typed("unfold", Float32, x)
	if x.shape.Rank != 4 || !w.fits(x.shape.Dims[2], x.shape.Dims[3]) {
		fail("unfold", fmt.Sprintf("an image [n c h w] is needed that has room for the window %+v", w), x)
	}
	n, c := x.shape.Dims[0], x.shape.Dims[1]
	oh, ow := w.Out(x.shape.Dims[2], x.shape.Dims[3])
	if w == pixel {
		return e.Reshape(x, n, c, oh*ow)
	}
	out := e.alloc("unfold", Float32, ShapeOf(n, c*w.Kernel[0]*w.Kernel[1], oh*ow))
	e.kernels.Im2Col(out.view(), x.view(), w)
	return out
}

// Fold adds columns up to an image; see Ops.
func (e *Eager) Fold(columns *Tensor, w Window, c, h, wd int) *Tensor {
	e.check("fold", columns)
	typed("fold", Float32, columns)
	image := ShapeOf(columns.shape.Dims[0], c, h, wd)
	if !w.fits(h, wd) {
		fail("fold", fmt.Sprintf("the image %v has no room for the window %+v", image, w), columns)
	}
	oh, ow := w.Out(h, wd)
	if columns.shape != ShapeOf(columns.shape.Dims[0], c*w.Kernel[0]*w.Kernel[1], oh*ow) {
		fail("fold", fmt.Sprintf("columns of %v under the window %+v are needed", image, w), columns)
	}
	if w == pixel {
		return e.Reshape(columns, image.Slice()...)
	}
	d := e.dense(columns)
	defer e.drop(d, columns)
	out := e.alloc("fold", Float32, image)
	e.kernels.Col2Im(out.view(), d.view(), w)
	return out
}

// Conv2d correlates; see Ops.
func (e *Eager) Conv2d(x, filters *Tensor, w Window) *Tensor {
	f := Convolution{w}
	e.check(f.Name(), x, filters)
	f.check(x, filters)
	return Apply(e, f, x, filters)
}
