package engine

// Reduction says what becomes of a loss that has a value for each element.
type Reduction uint8

// The reductions of losses.
const (
	Average Reduction = iota // one number, the mean
	Total                    // one number, the sum
	Each                     // as it is
)

func (r Reduction) of(o Ops, each *Tensor) *Tensor {
	switch r {
	case Total:
		return o.Sum(each)
	case Each:
		return each
	}
	return Mean(o, each)
}

// CrossEntropy is the weighted mean of -log softmax(logits)[label] over the rows
// of logits [m classes], with int32 labels [m]. weights [m] may be nil for equal
// ones; their sum is taken as 1e-6 at least. A logit of -Inf rules its class out. A
// label outside the classes is an error that Sync returns.
func CrossEntropy(o Ops, logits, labels, weights *Tensor) *Tensor {
	const op = "cross entropy"
	Check(op, logits, labels)
	if logits.shape.Rank != 2 || labels.shape != ShapeOf(logits.shape.Dims[0]) {
		fail(op, "logits [m classes] and labels [m] are needed", logits, labels)
	}
	if weights != nil {
		Check(op, weights)
		if weights.shape != labels.shape {
			fail(op, "weights [m], one a row of logits, are needed", logits, labels, weights)
		}
	}
	m := logits.shape.Dims[0]
	return Tidy(o, func() *Tensor {
		each := Apply(o, logLikelihood{}, logits, labels)
		if weights == nil {
			return Scale(o, o.Sum(each), -1/float32(m))
		}
		v := o.Valid()
		total := v.Max(v.Sum(weights), v.Full(1e-6))
		return o.Neg(o.Div(o.Sum(o.Mul(each, weights)), total))
	})
}

// MSE is (a - b)². The operands have equal shapes.
func MSE(o Ops, a, b *Tensor, r Reduction) *Tensor {
	paired("mean squared error", a, b)
	return Tidy(o, func() *Tensor {
		off := o.Sub(a, b)
		return r.of(o, o.Mul(off, off))
	})
}

// L1 is |a - b|, with a gradient of 0 where they are equal. The operands have
// equal shapes.
func L1(o Ops, a, b *Tensor, r Reduction) *Tensor {
	paired("l1", a, b)
	return Tidy(o, func() *Tensor { return r.of(o, o.Abs(o.Sub(a, b))) })
}

// paired panics unless the shapes are equal: a loss that stretched one operand
// would hide that the other was meant to have its shape.
func paired(op string, a, b *Tensor) {
	Check(op, a, b)
	if a.shape != b.shape {
		fail(op, "operands of equal shape are needed", a, b)
	}
}
