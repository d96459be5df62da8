package gpu

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// axis is one loop over several views: its extent, and each view's stride.
type axis struct {
	extent  int
	strides [maxBindings]int
}

// axes lists the loops over views of one shape, innermost first. Axes that every view
// crosses without a gap are one, so most have one or two. There is at least one.
func axes(views []engine.View) []axis {
	var list []axis
	shape := views[0].Shape
	for at := range slices.Backward(shape.Dims[:shape.Rank]) {
		if shape.Dims[at] == 1 {
			continue
		}
		a := axis{extent: shape.Dims[at]}
		for i, v := range views {
			a.strides[i] = v.Strides[at]
		}
		if n := len(list); n > 0 && list[n-1].goesOn(a) {
			list[n-1].extent *= a.extent
			continue
		}
		list = append(list, a)
	}
	if list == nil {
		list = []axis{{extent: 1}}
	}
	return list
}

// goesOn reports whether a step along the outer axis is one past the end of this one.
func (a axis) goesOn(outer axis) bool {
	for i := range a.strides {
		if outer.strides[i] != a.strides[i]*a.extent {
			return false
		}
	}
	return true
}

// each runs an elementwise shader over views of one shape, dst first. What is too
// large to be seen at once is cut.
func (k *kernels) each(shader string, value uint32, views ...engine.View) {
	count := views[0].Shape.Elements()
	if count == 0 {
		return
	}
	if !k.fits(views...) {
		at, ok := outermost(views[0])
		if !ok {
			k.tooLarge(shader, views...)
			return
		}
		first, second := halves(at, views)
		k.each(shader, value, first...)
		k.each(shader, value, second...)
		return
	}
	loops := axes(views)
	params := make([]uint32, 8, paramBytes/4)
	params[0], params[1], params[2] = uint32(count), uint32(len(loops)), value
	var bound [maxBindings]binding
	for i, v := range views {
		bound[i], params[4+i] = k.bind(v)
	}
	for _, a := range loops {
		params = append(params, uint32(a.extent), 0, 0, 0)
		for _, stride := range a.strides {
			params = append(params, uint32(stride))
		}
	}
	if len(loops) == 1 {
		shader += "_flat"
	} else {
		shader += "_strided"
	}
	k.run(shader, count, params, bound[:len(views)]...)
}

// Fill sets every element; see engine.Kernels.
func (k *kernels) Fill(dst engine.View, value float32) {
	word := math.Float32bits(value)
	switch {
	case dst.Shape.Elements() == 0:
	case dst.Contiguous():
		k.queue.fill(bytesOf(dst), word)
	default:
		k.each("fill", word, dst)
	}
}

// CopyStrided copies between views of equal shape; see engine.Kernels.
func (k *kernels) CopyStrided(dst, src engine.View) { k.each("copy", 0, dst, src) }

// Unary computes element by element; see engine.Kernels.
func (k *kernels) Unary(op engine.UnaryOp, dst, a engine.View) { k.each(op.String(), 0, dst, a) }

// Binary computes element by element; see engine.Kernels.
func (k *kernels) Binary(op engine.BinaryOp, dst, a, b engine.View) {
	k.each(op.String(), 0, dst, a, b)
}

// Where chooses element by element; see engine.Kernels.
func (k *kernels) Where(dst, cond, a, b engine.View) { k.each("where", 0, dst, cond, a, b) }

// Rand makes uniform numbers; see engine.Kernels. What is too large to be seen at once
// is made piece by piece.
func (k *kernels) Rand(dst engine.View, d engine.Draw) {
	const block = 4 // numbers that one invocation makes, of one counter
	limits := k.device.physical.properties.limits
	most := int(min(int64(limits.maxStorageBufferRange)-int64(limits.minStorageBufferOffset), math.MaxInt32)) / engine.ElementSize / block * block
	count := dst.Shape.Elements()
	for first := 0; first < count; first += most {
		piece := dst
		piece.Shape = engine.ShapeOf(min(most, count-first))
		piece.Strides = piece.Shape.RowMajor()
		piece.Offset += first
		to, offset := k.bind(piece)
		n := piece.Shape.Elements()
		k.run("rand", (n+block-1)/block, []uint32{
			uint32(n), offset, uint32(first / block), 0, uint32(d.Key), uint32(d.Key >> 32), uint32(d.Stream), uint32(d.Stream >> 32),
		}, to)
	}
}
