package autodiff

import (
	"github.com/memdiag/memdiag/engine"
)

type tensors = []*engine.Tensor

// unary records out = f(a). The derivative is made of the gradient and of what
// was saved: out, or a where that is given.
func (o *Ops) unary(op string, a, out, save *engine.Tensor, derivative func(p *pass, g, s *engine.Tensor) *engine.Tensor) *engine.Tensor {
	if !o.tracked(a) {
		return o.plain(op, out)
	}
	return o.record(op, out, tensors{a}, tensors{save}, func(p *pass) {
		p.to(0, func() *engine.Tensor { return derivative(p, p.grad, p.saved[0]) })
	})
}

// Neg is -a.
func (o *Ops) Neg(a *engine.Tensor) *engine.Tensor {
	return o.unary("neg", a, o.inner.Neg(a), nil, func(p *pass, g, _ *engine.Tensor) *engine.Tensor { return p.Neg(g) })
}

// Exp is its own derivative.
func (o *Ops) Exp(a *engine.Tensor) *engine.Tensor {
	out := o.inner.Exp(a)
	return o.unary("exp", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor { return p.Mul(g, y) })
}

// Log has the derivative 1/a.
func (o *Ops) Log(a *engine.Tensor) *engine.Tensor {
	return o.unary("log", a, o.inner.Log(a), a, func(p *pass, g, x *engine.Tensor) *engine.Tensor { return p.Div(g, x) })
}

// Sqrt has the derivative 1/(2·sqrt a).
func (o *Ops) Sqrt(a *engine.Tensor) *engine.Tensor {
	out := o.inner.Sqrt(a)
	return o.unary("sqrt", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return engine.Scale(p, p.Div(g, y), 0.5)
	})
}

// Recip has the derivative -1/a².
func (o *Ops) Recip(a *engine.Tensor) *engine.Tensor {
	out := o.inner.Recip(a)
	return o.unary("recip", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return p.Neg(p.Mul(g, p.Mul(y, y)))
	})
}

// Abs has the sign of a as its derivative, 0 at 0.
func (o *Ops) Abs(a *engine.Tensor) *engine.Tensor {
	return o.unary("abs", a, o.inner.Abs(a), a, func(p *pass, g, x *engine.Tensor) *engine.Tensor {
		zero := p.Full(0)
		return p.Mul(g, p.Sub(p.Less(zero, x), p.Less(x, zero)))
	})
}

// ReLU passes the gradient where a is above 0 or NaN.
func (o *Ops) ReLU(a *engine.Tensor) *engine.Tensor {
	out := o.inner.ReLU(a)
	return o.unary("relu", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return engine.ReLUGrad(p.Ops, g, y)
	})
}

// Tanh has the derivative 1 - tanh².
func (o *Ops) Tanh(a *engine.Tensor) *engine.Tensor {
	out := o.inner.Tanh(a)
	return o.unary("tanh", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return p.Mul(g, p.Sub(p.Full(1), p.Mul(y, y)))
	})
}

// Sigmoid has the derivative s·(1-s).
func (o *Ops) Sigmoid(a *engine.Tensor) *engine.Tensor {
	out := o.inner.Sigmoid(a)
	return o.unary("sigmoid", a, out, out, func(p *pass, g, y *engine.Tensor) *engine.Tensor {
		return p.Mul(g, p.Mul(y, p.Sub(p.Full(1), y)))
	})
}

// onlyIf saves t where the condition holds.
func onlyIf(condition bool, t *engine.Tensor) *engine.Tensor {
	if condition {
		return t
	}
	return nil
}

// binary records out = f(a, b): left and right make the gradients before they
// are folded to the operands' shapes. Operands stretch, so folding is common.
func (o *Ops) binary(op string, a, b, out *engine.Tensor, saves tensors, left, right func(p *pass) *engine.Tensor) *engine.Tensor {
	if !o.tracked(a, b) {
		return o.plain(op, out)
	}
	shapeA, shapeB := a.Shape(), b.Shape()
	return o.record(op, out, tensors{a, b}, saves, func(p *pass) {
		p.to(0, func() *engine.Tensor { return engine.SumTo(p, left(p), shapeA) })
		p.to(1, func() *engine.Tensor { return engine.SumTo(p, right(p), shapeB) })
	})
}

func whole(p *pass) *engine.Tensor { return p.grad }

// Add passes the gradient to both.
func (o *Ops) Add(a, b *engine.Tensor) *engine.Tensor {
	return o.binary("add", a, b, o.inner.Add(a, b), nil, whole, whole)
}

// Sub passes the gradient to a and its negative to b.
func (o *Ops) Sub(a, b *engine.Tensor) *engine.Tensor {
	return o.binary("sub", a, b, o.inner.Sub(a, b), nil, whole, func(p *pass) *engine.Tensor { return p.Neg(p.grad) })
}

// Mul has the other factor as each derivative.
func (o *Ops) Mul(a, b *engine.Tensor) *engine.Tensor {
	saved := tensors{onlyIf(Tracked(b), a), onlyIf(Tracked(a), b)}
	return o.binary("mul", a, b, o.inner.Mul(a, b), saved,
		func(p *pass) *engine.Tensor { return p.Mul(p.grad, p.saved[1]) },
		func(p *pass) *engine.Tensor { return p.Mul(p.grad, p.saved[0]) })
}

// Div has the derivatives 1/b and -(a/b)/b.
func (o *Ops) Div(a, b *engine.Tensor) *engine.Tensor {
	out := o.inner.Div(a, b)
	return o.binary("div", a, b, out, tensors{b, onlyIf(Tracked(b), out)},
		func(p *pass) *engine.Tensor { return p.Div(p.grad, p.saved[0]) },
		func(p *pass) *engine.Tensor { return p.Neg(p.Div(p.Mul(p.grad, p.saved[1]), p.saved[0])) })
}

// Max passes the gradient to the larger; equals share it, and beside NaN both
// get it. What loses is cut off, not multiplied by 0: an infinite gradient would
// become NaN.
func (o *Ops) Max(a, b *engine.Tensor) *engine.Tensor {
	share := func(p *pass, it, other *engine.Tensor) *engine.Tensor {
		half := engine.Scale(p, p.grad, 0.5)
		return p.Where(p.Less(it, other), p.Full(0), p.Where(p.Equal(it, other), half, p.grad))
	}
	return o.binary("max", a, b, o.inner.Max(a, b), tensors{a, b},
		func(p *pass) *engine.Tensor { return share(p, p.saved[0], p.saved[1]) },
		func(p *pass) *engine.Tensor { return share(p, p.saved[1], p.saved[0]) })
}

// Pow has the derivatives b·a^(b-1) and a^b·log a; the second wants a above 0.
func (o *Ops) Pow(a, b *engine.Tensor) *engine.Tensor {
	out := o.inner.Pow(a, b)
	return o.binary("pow", a, b, out, tensors{a, onlyIf(Tracked(a), b), onlyIf(Tracked(b), out)},
		func(p *pass) *engine.Tensor {
			x, y := p.saved[0], p.saved[1]
			return p.Mul(p.grad, p.Mul(y, p.Pow(x, p.Sub(y, p.Full(1)))))
		},
		func(p *pass) *engine.Tensor { return p.Mul(p.grad, p.Mul(p.saved[2], p.Log(p.saved[0]))) })
}

// Less has no gradient.
func (o *Ops) Less(a, b *engine.Tensor) *engine.Tensor { return o.inner.Less(a, b) }

// Equal has no gradient.
func (o *Ops) Equal(a, b *engine.Tensor) *engine.Tensor { return o.inner.Equal(a, b) }

// Where passes the gradient to what was chosen; the condition has none.
func (o *Ops) Where(cond, a, b *engine.Tensor) *engine.Tensor {
	return o.binary("where", a, b, o.inner.Where(cond, a, b), tensors{cond},
		func(p *pass) *engine.Tensor { return p.Where(p.saved[0], p.grad, p.Full(0)) },
		func(p *pass) *engine.Tensor { return p.Where(p.saved[0], p.Full(0), p.grad) })
}
