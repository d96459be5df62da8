package engine

import "fmt"

// Convolution is the Fusion that Conv2d is: of x [n c h w] and filters
// [o c kh kw], and as Convolve has it of a bias [o] for each channel.
type Convolution struct{ Window Window }

// Name is "conv2d".
func (Convolution) Name() string { return "conv2d" }

// Compose is a product with the columns of patches.
func (f Convolution) Compose(o Ops, in ...*Tensor) *Tensor {
	x, filters, w := in[0], in[1], f.Window
	oh, ow := w.Out(x.shape.Dims[2], x.shape.Dims[3])
	rows := o.Reshape(filters, filters.shape.Dims[0], x.shape.Dims[1]*w.Kernel[0]*w.Kernel[1])
	out := o.Reshape(o.MatMul(rows, o.Unfold(x, w)), x.shape.Dims[0], filters.shape.Dims[0], oh, ow)
	if len(in) > 2 {
		out = o.Add(out, o.Reshape(in[2], 1, filters.shape.Dims[0], 1, 1))
	}
	return out
}

// Forward is by the kernel Conv2d; nothing is kept.
func (f Convolution) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	f.check(in[0], in[1])
	v := e.packed(in...)
	bias := View{}
	if len(in) > 2 {
		bias = v[2]
	}
	x, filters := in[0].shape, in[1].shape
	oh, ow := f.Window.Out(x.Dims[2], x.Dims[3])
	out = e.float(f.Name(), x.Dims[0], filters.Dims[0], oh, ow)
	e.fused.Conv2d(out.view(), v[0], v[1], bias, f.Window)
	return out, nil
}

// Backward is by the kernel Conv2dGrad.
func (f Convolution) Backward(e *Eager, grad *Tensor, in, _ []*Tensor, wants []bool) []*Tensor {
	grads := []*Tensor{e.wanted(wants[0], f.Name(), in[0]), e.wanted(wants[1], f.Name(), in[1])}
	if wants[0] || wants[1] {
		v := e.packed(grad, in[0], in[1])
		e.fused.Conv2dGrad(viewOf(grads[0]), viewOf(grads[1]), v[0], v[1], v[2], f.Window)
	}
	if len(in) > 2 {
		grads = append(grads, nil)
		if wants[2] {
			grads[2] = e.Sum(grad, 0, 2, 3)
		}
	}
	return grads
}

// check panics unless the operands go together.
func (f Convolution) check(x, filters *Tensor) {
	w := f.Window
	typed(f.Name(), Float32, x, filters)
	if x.shape.Rank != 4 || filters.shape.Rank != 4 || filters.shape.Dims[1] != x.shape.Dims[1] ||
		w.Kernel != [2]int{filters.shape.Dims[2], filters.shape.Dims[3]} || !w.fits(x.shape.Dims[2], x.shape.Dims[3]) {
		fail(f.Name(), fmt.Sprintf("an image [n c h w] with room for the window %+v and filters [o c kh kw] of its kernel are needed", w), x, filters)
	}
}

// Convolve is Conv2d with a bias [o] for each channel of the result.
func Convolve(o Ops, x, filters, bias *Tensor, w Window) *Tensor {
	f := Convolution{w}
	Check(f.Name(), x, filters, bias)
	if filters.shape.Rank != 4 || bias.shape != ShapeOf(filters.shape.Dims[0]) || bias.dtype != Float32 {
		fail(f.Name(), "filters [o c kh kw] and a bias [o] of float32 are needed", filters, bias)
	}
	return Tidy(o, func() *Tensor {
		if fuser, is := o.(Fuser); is {
			if out, _, ok := fuser.Fuse(f, x, filters, bias); ok {
				return out
			}
		}
		// By Conv2d and not Compose: a decorator may have its own way to do it.
		return o.Add(o.Conv2d(x, filters, w), o.Reshape(bias, 1, bias.shape.Dims[0], 1, 1))
	})
}

// maxTiles is the Fusion behind MaxPool2d with windows that do not overlap and
// leave nothing over: they are axes of the image seen otherwise, so no patch is
// copied.
type maxTiles struct{ window Window }

func (maxTiles) Name() string { return "max pool" }

func (f maxTiles) out(x Shape) Shape {
	return ShapeOf(x.Dims[0], x.Dims[1], x.Dims[2]/f.window.Kernel[0], x.Dims[3]/f.window.Kernel[1])
}

func (f maxTiles) Compose(o Ops, in ...*Tensor) *Tensor {
	s, w := f.out(in[0].shape), f.window
	n, c, oh, ow := s.Dims[0], s.Dims[1], s.Dims[2], s.Dims[3]
	rows := o.MaxOver(o.Reshape(in[0], n, c, oh, w.Kernel[0], ow*w.Kernel[1]), 3)
	return o.MaxOver(o.Reshape(rows, n, c, oh, ow, w.Kernel[1]), 4)
}

func (f maxTiles) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	typed(f.Name(), Float32, in...)
	v := e.packed(in...)
	out = e.alloc(f.Name(), Float32, f.out(in[0].shape))
	e.fused.MaxPool(out.view(), v[0], f.window)
	return out, nil
}

func (f maxTiles) Backward(e *Eager, grad *Tensor, in, _ []*Tensor, _ []bool) []*Tensor {
	v := e.packed(grad, in[0])
	dx := e.alloc(f.Name(), Float32, in[0].shape)
	e.fused.MaxPoolGrad(dx.view(), v[0], v[1], f.window)
	return []*Tensor{dx}
}
