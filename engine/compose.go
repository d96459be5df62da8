package engine

import "fmt"

// What follows is composed of Ops, so that any decorator sees primitives only.

// Scale multiplies by a number.
func Scale(o Ops, a *Tensor, by float32) *Tensor {
	return Tidy(o, func() *Tensor { return o.Mul(a, o.Full(by)) })
}

// Shift adds a number.
func Shift(o Ops, a *Tensor, by float32) *Tensor {
	return Tidy(o, func() *Tensor { return o.Add(a, o.Full(by)) })
}

// Mean averages over the axes named, which fall out of the shape; without any,
// over all.
func Mean(o Ops, a *Tensor, axes ...int) *Tensor {
	return Tidy(o, func() *Tensor {
		sum := o.Sum(a, axes...)
		return Scale(o, sum, float32(sum.shape.Elements())/float32(a.shape.Elements()))
	})
}

// SumTo folds a to a shape that broadcasts to a's: the adjoint of Expand.
func SumTo(o Ops, a *Tensor, shape Shape) *Tensor {
	if a.shape == shape {
		return a
	}
	lead := a.shape.Rank - shape.Rank
	var axes []int
	for axis := range a.shape.Rank {
		if axis < lead || shape.Dims[axis-lead] == 1 && a.shape.Dims[axis] != 1 {
			axes = append(axes, axis)
		}
	}
	return Tidy(o, func() *Tensor {
		folded := a
		if len(axes) > 0 {
			folded = o.Sum(a, axes...)
		}
		return o.Reshape(folded, shape.Slice()...)
	})
}

// Softmax makes the innermost axis a distribution.
func Softmax(o Ops, a *Tensor) *Tensor {
	return Tidy(o, func() *Tensor { return o.Exp(o.LogSoftmax(a)) })
}

// CrossEntropy is the weighted mean of -log softmax(logits)[label] over the rows
// of logits [m classes], with int32 labels [m]. weights [m] may be nil for equal
// ones; their sum is at least 1e-6.
func CrossEntropy(o Ops, logits, labels, weights *Tensor) *Tensor {
	if logits.shape.Rank != 2 || labels.shape != ShapeOf(logits.shape.Dims[0]) {
		fail("cross entropy", "logits [m classes] and labels [m] are needed", logits, labels)
	}
	m, classes := logits.shape.Dims[0], logits.shape.Dims[1]
	return Tidy(o, func() *Tensor {
		v := o.Valid()
		chosen := v.Gather(v.FromFloats(identity(classes), classes, classes), labels)
		each := o.Sum(o.Mul(o.LogSoftmax(logits), chosen), 1)
		if weights == nil {
			return Scale(o, o.Sum(each), -1/float32(m))
		}
		total := v.Max(v.Sum(weights), v.Full(1e-6))
		return o.Neg(o.Div(o.Sum(o.Mul(each, weights)), total))
	})
}

func identity(n int) []float32 {
	data := make([]float32, n*n)
	for i := range n {
		data[i*n+i] = 1
	}
	return data
}

// Moments are the mean and the (biased) variance over axes, which stay in the
// shape with extent 1.
func Moments(o Ops, a *Tensor, axes ...int) (mean, variance *Tensor) {
	ones := a.shape
	for _, axis := range axes {
		ones.Dims[a.axis("moments", axis)] = 1
	}
	dims := ones.Slice()
	mean = Tidy(o, func() *Tensor { return o.Reshape(Mean(o, a, axes...), dims...) })
	variance = Tidy(o, func() *Tensor {
		off := o.Sub(a, mean)
		return o.Reshape(Mean(o, o.Mul(off, off), axes...), dims...)
	})
	return mean, variance
}

// Standardize takes mean off and divides by the root of variance + epsilon.
func Standardize(o Ops, a, mean, variance *Tensor, epsilon float32) *Tensor {
	return Tidy(o, func() *Tensor {
		return o.Div(o.Sub(a, mean), o.Sqrt(Shift(o, variance, epsilon)))
	})
}

// LayerNorm standardizes the innermost axis, then applies gain and bias of its
// extent.
func LayerNorm(o Ops, a, gain, bias *Tensor, epsilon float32) *Tensor {
	return Tidy(o, func() *Tensor {
		mean, variance := Moments(o, a, -1)
		return o.Add(o.Mul(Standardize(o, a, mean, variance, epsilon), gain), bias)
	})
}

// BatchNorm standardizes each channel of x [n c h w] by moments of shape
// [1 c 1 1], the batch's own (see Moments) or running ones, then applies gain and
// bias [c].
func BatchNorm(o Ops, x, mean, variance, gain, bias *Tensor, epsilon float32) *Tensor {
	if x.shape.Rank != 4 || gain.shape != ShapeOf(x.shape.Dims[1]) || bias.shape != gain.shape {
		fail("batch norm", "an image [n c h w], gain [c] and bias [c] are needed", x, gain, bias)
	}
	c := x.shape.Dims[1]
	return Tidy(o, func() *Tensor {
		scaled := o.Mul(Standardize(o, x, mean, variance, epsilon), o.Reshape(gain, 1, c, 1, 1))
		return o.Add(scaled, o.Reshape(bias, 1, c, 1, 1))
	})
}

// Dropout zeroes elements with probability p and scales the others by 1/(1-p).
func Dropout(o Ops, a *Tensor, p float32, d Draw) *Tensor {
	if p < 0 || p >= 1 {
		fail("dropout", fmt.Sprintf("the probability %g is not in [0,1)", p), a)
	}
	return Tidy(o, func() *Tensor {
		v := o.Valid()
		keep := v.Less(v.Full(p), v.Rand(d, a.shape.Slice()...))
		return o.Mul(a, Scale(v, keep, 1/(1-p)))
	})
}

// MaxPool2d takes the largest element under each place of a window without
// padding: [n c h w] to [n c oh ow]. Equal largest elements share the gradient.
func MaxPool2d(o Ops, x *Tensor, w Window) *Tensor {
	if w.Pad != [2]int{} {
		fail("max pool", "padding would let zeros win; pad with 0", x)
	}
	return pool(o, "max pool", x, w, func(patches *Tensor) *Tensor { return o.MaxOver(patches, 2) })
}

// AvgPool2d averages under each place of a window: [n c h w] to [n c oh ow].
// Padding counts as zeros.
func AvgPool2d(o Ops, x *Tensor, w Window) *Tensor {
	return pool(o, "average pool", x, w, func(patches *Tensor) *Tensor { return Mean(o, patches, 2) })
}

func pool(o Ops, op string, x *Tensor, w Window, fold func(*Tensor) *Tensor) *Tensor {
	if x.shape.Rank != 4 || !w.fits(x.shape.Dims[2], x.shape.Dims[3]) {
		fail(op, fmt.Sprintf("an image [n c h w] is needed that has room for the window %+v", w), x)
	}
	n, c := x.shape.Dims[0], x.shape.Dims[1]
	oh, ow := w.Out(x.shape.Dims[2], x.shape.Dims[3])
	return Tidy(o, func() *Tensor {
		patches := o.Reshape(o.Unfold(x, w), n, c, w.Kernel[0]*w.Kernel[1], oh*ow)
		return o.Reshape(fold(patches), n, c, oh, ow)
	})
}

// Upsample2x repeats every pixel of x [n c h w] in a square of two by two.
func Upsample2x(o Ops, x *Tensor) *Tensor {
	if x.shape.Rank != 4 {
		fail("upsample", "an image [n c h w] is needed", x)
	}
	n, c, h, w := x.shape.Dims[0], x.shape.Dims[1], x.shape.Dims[2], x.shape.Dims[3]
	return Tidy(o, func() *Tensor {
		wide := o.Expand(o.Reshape(x, n, c, h, 1, w, 1), n, c, h, 2, w, 2)
		return o.Reshape(wide, n, c, 2*h, 2*w)
	})
}
