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
	Check("sum to", a)
	if a.shape == shape {
		return a
	}
	if !stretches(shape, a.shape) {
		fail("sum to", fmt.Sprintf("%v does not stretch to it", shape), a)
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

// Dropout zeroes elements with probability p and scales the others by 1/(1-p); with
// a p of 1 nothing is left.
func Dropout(o Ops, a *Tensor, p float32, d Draw) *Tensor {
	Check("dropout", a)
	if !(p >= 0 && p <= 1) { // NaN is not either
		fail("dropout", fmt.Sprintf("the probability %g is not in [0,1]", p), a)
	}
	return Tidy(o, func() *Tensor {
		v := o.Valid()
		dropped := v.Less(v.Rand(d, a.shape.Slice()...), v.Full(p))
		return o.Mul(a, v.Where(dropped, v.Full(0), v.Full(1/(1-p))))
	})
}
