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
		if have, ok := s.slots[p]; ok && s.Momentum != 0 {
			engine.Momentum(o, p, g, have.tensors[0], s.Momentum, s.Rate)
			return
		}
		if s.Momentum != 0 { // the first velocity is the gradient
			s.own(p, 0, o.Copy(g))
		}
		o.Assign(p, o.Sub(p, engine.Scale(o, g, s.Rate)))
	})
}
