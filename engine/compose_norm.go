package engine

import "fmt"

// Moments are the mean and the (biased) variance over axes, which stay in the
// shape with extent 1.
func Moments(o Ops, a *Tensor, axes ...int) (mean, variance *Tensor) {
	s := o.Begin()
	defer s.finish()
	mean, _, variance = centre(o, a, axes...)
	s.promote(mean)
	s.promote(variance)
	return mean, variance
}

// centre returns the moments, and what is left of a without its mean: the moments
// need it, and so does everyone who standardizes.
func centre(o Ops, a *Tensor, axes ...int) (mean, off, variance *Tensor) {
	Check("moments", a)
	ones := a.shape
	for _, axis := range axes {
		ones.Dims[a.axis("moments", axis)] = 1
	}
	dims := ones.Slice()
	mean = o.Reshape(Mean(o, a, axes...), dims...)
	off = o.Sub(a, mean)
	variance = o.Reshape(Mean(o, o.Mul(off, off), axes...), dims...)
	return mean, off, variance
}

// inverseRoot is 1/sqrt(variance + epsilon).
func inverseRoot(o Ops, variance *Tensor, epsilon float32) *Tensor {
	return o.Recip(o.Sqrt(Shift(o, variance, epsilon)))
}

// LayerNorm standardizes the innermost axis, then applies gain and bias of its
// extent.
func LayerNorm(o Ops, a, gain, bias *Tensor, epsilon float32) *Tensor {
	Check("layer norm", a, gain, bias)
	if a.shape.Rank == 0 || gain.shape != ShapeOf(a.shape.Dims[a.shape.Rank-1]) || bias.shape != gain.shape {
		fail("layer norm", "rows [… d], gain [d] and bias [d] are needed", a, gain, bias)
	}
	return Apply(o, layerNorm{epsilon}, a, gain, bias)
}

// BatchNorm standardizes each channel of x [n c h w] by moments of shape
// [1 c 1 1], then applies gain and bias [c]. The moments are running ones, or the
// batch's own: see BatchNormMoments, which saves a pass over x.
func BatchNorm(o Ops, x, mean, variance, gain, bias *Tensor, epsilon float32) *Tensor {
	image(x, gain, bias)
	Check("batch norm", mean, variance)
	if moments := ShapeOf(1, x.shape.Dims[1], 1, 1); mean.shape != moments || variance.shape != moments {
		fail("batch norm", fmt.Sprintf("moments of shape %v are needed for %v", moments, x.shape), mean, variance)
	}
	return Tidy(o, func() *Tensor { return affine(o, o.Sub(x, mean), variance, gain, bias, epsilon) })
}

// BatchNormMoments is BatchNorm by the batch's own moments, which it returns as
// well, in the shape [1 c 1 1].
func BatchNormMoments(o Ops, x, gain, bias *Tensor, epsilon float32) (out, mean, variance *Tensor) {
	image(x, gain, bias)
	s := o.Begin()
	defer s.finish()
	mean, off, variance := centre(o, x, 0, 2, 3)
	out = affine(o, off, variance, gain, bias, epsilon)
	s.promote(out)
	s.promote(mean)
	s.promote(variance)
	return out, mean, variance
}

func image(x, gain, bias *Tensor) {
	Check("batch norm", x, gain, bias)
	if x.shape.Rank != 4 || gain.shape != ShapeOf(x.shape.Dims[1]) || bias.shape != gain.shape {
		fail("batch norm", "an image [n c h w], gain [c] and bias [c] are needed", x, gain, bias)
	}
}

// affine scales and shifts off, from which the mean was taken. Gain and inverse
// root, one number a channel, meet before they meet the image.
func affine(o Ops, off, variance, gain, bias *Tensor, epsilon float32) *Tensor {
	c := gain.shape.Dims[0]
	scale := o.Mul(inverseRoot(o, variance, epsilon), o.Reshape(gain, 1, c, 1, 1))
	return o.Add(o.Mul(off, scale), o.Reshape(bias, 1, c, 1, 1))
}
