package optim

import (
	"github.com/memdiag/memdiag/engine"
)

// SGD is gradient descent with momentum, by PyTorch's rule: velocity becomes
// Momentum·velocity + gradient, and Rate·velocity is taken off the parameter.
// Its state is the "velocity".
type SGD struct {
	state
	Rate     float32
	Momentum float32 // 0 keeps no velocity
}

// NewSGD returns the optimizer of these parameters, which the caller goes on
// owning. It holds no device memory until the first Step.
func NewSGD(o engine.Ops, parameters []*engine.Tensor, rate, momentum float32) *SGD {
	return &SGD{state: newState(o, parameters, false, "velocity"), Rate: rate, Momentum: momentum}
}

// Step moves every parameter that has a gradient, and releases the gradient.
func (s *SGD) Step() {
	s.each(func(p, g *engine.Tensor) {
		o := s.ops
		if s.Momentum != 0 {
			g = s.velocity(p, g)
		}
		o.Assign(p, o.Sub(p, engine.Scale(o, g, s.Rate)))
	})
}

// velocity takes a gradient up and returns what the parameter moves by.
func (s *SGD) velocity(p, g *engine.Tensor) *engine.Tensor {
	o := s.ops
	have, ok := s.slots[p]
	if !ok {
		return s.own(p, 0, o.Copy(g)).tensors[0]
	}
	v := have.tensors[0]
	o.Assign(v, o.Add(engine.Scale(o, v, s.Momentum), g))
	return v
}
