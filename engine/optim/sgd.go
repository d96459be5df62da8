// Package optim holds optimizers: they turn gradients into new parameters.
package optim

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// SGD is gradient descent with momentum, by PyTorch's rule: velocity becomes
// Momentum·velocity + gradient, and Rate·velocity is taken off the parameter.
type SGD struct {
	Rate     float32
	Momentum float32 // 0 keeps no velocity

	ops        engine.Ops
	parameters []*engine.Tensor
	// velocity is made for each parameter when its first gradient comes, as
	// PyTorch does it: memory rises once, in the first step.
	velocity []*engine.Tensor
}

// NewSGD returns the optimizer of these parameters, which the caller goes on
// owning. It holds no device memory until the first Step.
func NewSGD(o engine.Ops, parameters []*engine.Tensor, rate, momentum float32) *SGD {
	return &SGD{Rate: rate, Momentum: momentum, ops: o.Valid(), parameters: parameters, velocity: make([]*engine.Tensor, len(parameters))}
}

// Step moves every parameter that has a gradient, and releases the gradient.
func (s *SGD) Step() {
	for i, p := range s.parameters {
		if g := autodiff.Grad(p); g != nil {
			s.move(i, p, g)
			autodiff.ZeroGrad(p)
		}
	}
}

func (s *SGD) move(i int, p, g *engine.Tensor) {
	o := s.ops
	scope := o.Begin()
	defer scope.End()
	switch {
	case s.Momentum == 0:
	case s.velocity[i] == nil:
		s.velocity[i] = o.Copy(g).Own(snapshot.OwnedByOptim)
		g = s.velocity[i]
	default:
		o.Assign(s.velocity[i], o.Add(engine.Scale(o, s.velocity[i], s.Momentum), g))
		g = s.velocity[i]
	}
	o.Assign(p, o.Sub(p, engine.Scale(o, g, s.Rate)))
}

// Release gives the state back. A later Step makes it anew.
func (s *SGD) Release() {
	for i, v := range s.velocity {
		if v != nil {
			v.Release()
			s.velocity[i] = nil
		}
	}
}
