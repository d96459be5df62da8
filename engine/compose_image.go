package engine

import "fmt"

// MaxPool2d takes the largest element under each place of a window without
// padding: [n c h w] to [n c oh ow]. Equal largest elements share the gradient.
func MaxPool2d(o Ops, x *Tensor, w Window) *Tensor {
	Check("max pool", x)
	if w.Pad != [2]int{} {
		fail("max pool", "padding would let zeros win; pad with 0", x)
	}
	if x.shape.Rank == 4 && w.Kernel == w.Stride && tiles(x.shape.Dims[2], w.Kernel[0]) && tiles(x.shape.Dims[3], w.Kernel[1]) {
		return Apply(o, maxTiles{w}, x)
	}
	if x.shape.Rank != 4 || !w.fits(x.shape.Dims[2], x.shape.Dims[3]) {
		fail("max pool", fmt.Sprintf("an image [n c h w] is needed that has room for the window %+v", w), x)
	}
	n, c := x.shape.Dims[0], x.shape.Dims[1]
	oh, ow := w.Out(x.shape.Dims[2], x.shape.Dims[3])
	return Tidy(o, func() *Tensor {
		patches := o.Reshape(o.Unfold(x, w), n, c, w.Kernel[0]*w.Kernel[1], oh*ow)
		return o.Reshape(o.MaxOver(patches, 2), n, c, oh, ow)
	})
}

func tiles(extent, kernel int) bool { return kernel > 0 && extent > 0 && extent%kernel == 0 }

// Upsample2x repeats every pixel of x [n c h w] in a square of two by two.
func Upsample2x(o Ops, x *Tensor) *Tensor {
	Check("upsample", x)
	if x.shape.Rank != 4 {
		fail("upsample", "an image [n c h w] is needed", x)
	}
	n, c, h, w := x.shape.Dims[0], x.shape.Dims[1], x.shape.Dims[2], x.shape.Dims[3]
	return Tidy(o, func() *Tensor {
		wide := o.Expand(o.Reshape(x, n, c, h, 1, w, 1), n, c, h, 2, w, 2)
		return o.Reshape(wide, n, c, 2*h, 2*w)
	})
}
