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

// Step moves every parameter that has a gradient, and releases the gradient. Where
// the device is too full for a parameter's first velocity, it panics with nothing
// moved; where kernels need more memory than that, with some moved, which have no
// gradient any more. Either way a further Step completes this one.
func (s *SGD) Step() {
	if s.Momentum != 0 {
		s.reserve()
	}
	s.each(func(p, g *engine.Tensor) {
		if s.Momentum != 0 {
			engine.Momentum(s.ops, p, g, s.slots[p].tensors[0], s.Momentum, s.Rate)
			return
		}
		s.ops.Assign(p, s.ops.Sub(p, engine.Scale(s.ops, g, s.Rate)))
	})
}
