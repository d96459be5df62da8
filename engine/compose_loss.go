package engine

import "fmt"

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

// SmoothL1 is (a - b)²/2β where |a - b| is below beta, else |a - b| - β/2: L1
// without the corner (Girshick 2015). beta is above 0; the operands have equal
// shapes.
func SmoothL1(o Ops, a, b *Tensor, beta float32, r Reduction) *Tensor {
	paired("smooth l1", a, b)
	if !(beta > 0) {
		fail("smooth l1", fmt.Sprintf("the bend at %g is not above 0; L1 is the loss without one", beta), a, b)
	}
	return Tidy(o, func() *Tensor {
		// With c the smaller of d and β, both branches are c·(d - c/2)/β.
		d := o.Abs(o.Sub(a, b))
		c := o.Neg(o.Max(o.Neg(d), o.Full(-beta)))
		return r.of(o, Scale(o, o.Mul(c, o.Sub(d, Scale(o, c, 0.5))), 1/beta))
	})
}

// BCEWithLogits is the binary cross entropy of sigmoid(logits) against targets in
// [0,1], -t·log σ(x) - (1-t)·log(1-σ(x)), finite for any finite logits. The operands
// have equal shapes.
func BCEWithLogits(o Ops, logits, targets *Tensor, r Reduction) *Tensor {
	paired("binary cross entropy", logits, targets)
	return Tidy(o, func() *Tensor {
		// (1-t)·x + max(-x,0) + log(1 + exp(-|x|)). Max and not ReLU, since its gradient
		// of 1/2 at 0 makes up for the 0 of Abs there.
		tail := o.Log(Shift(o, o.Exp(o.Neg(o.Abs(logits))), 1))
		level := o.Mul(o.Sub(o.Full(1), targets), logits)
		return r.of(o, o.Add(o.Add(level, o.Max(o.Neg(logits), o.Full(0))), tail))
	})
}

// KL is the divergence Σ t·(log t - input) of targets t, distributions along the
// innermost axis, from input, log-probabilities; 0·log 0 is 0, but a target of 0
// against an input of -Inf is NaN, as in PyTorch. Average and Total
// are over the rows that are left, Each keeps them: [… d] to […]. The targets have
// no gradient.
func KL(o Ops, input, targets *Tensor, r Reduction) *Tensor {
	paired("kl divergence", input, targets)
	if input.shape.Rank == 0 {
		fail("kl divergence", "a scalar is no distribution", input)
	}
	return Tidy(o, func() *Tensor {
		v := o.Valid()
		t := v.Detach(targets)
		// The logarithm of the smallest normal number times0 is 0; the logarithm of 0 times 0 is not.
		entropy := v.Mul(t, v.Log(v.Max(t, v.Full(0x1p-126))))
		return r.of(o, o.Sum(o.Sub(entropy, o.Mul(t, input)), -1))
	})
}

// paired panics unless the shapes are equal: a loss that stretched one operand
// would hide that the other was meant to have its shape.
func paired(op string, a, b *Tensor) {
	Check(op, a, b)
	if a.shape != b.shape {
		fail(op, "operands of equal shape are needed", a, b)
	}
}
