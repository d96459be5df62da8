package optim

import (
	"math"

	"github.com/memdiag/memdiag/engine"
)

// Adam moves each parameter by the running mean of its gradients over the root of
// their running mean square (Kingma and Ba 2015), by PyTorch's rule, and with
// Decay pulls it towards 0 apart from that (AdamW, Loshchilov and Hutter 2019).
// Its state is the "mean" and the "square", and the count of steps.
type Adam struct {
	state
	Rate         float32
	Beta1, Beta2 float32 // what the mean and the mean square keep at each step
	Epsilon      float32 // added to the root
	Decay        float32 // Rate·Decay of a parameter is taken off at each step
}

// NewAdam returns the optimizer of these parameters, which the caller goes on
// owning, with betas of 0.9 and 0.999, epsilon 1e-8 and no decay. It holds no
// device memory until the first Step.
func NewAdam(o engine.Ops, parameters []*engine.Tensor, rate float32) *Adam {
	return &Adam{
		state: newState(o, parameters, true, "mean", "square"),
		Rate:  rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8,
	}
}

// NewAdamW is NewAdam with decay.
func NewAdamW(o engine.Ops, parameters []*engine.Tensor, rate, decay float32) *Adam {
	a := NewAdam(o, parameters, rate)
	a.Decay = decay
	return a
}

// Step moves every parameter that has a gradient, and releases the gradient. Where
// the device is too full for a parameter's first state, it panics with nothing
// moved; where kernels need more memory than that, with some moved, which have no
// gradient any more. Either way a further Step completes this one.
func (a *Adam) Step() {
	a.reserve()
	a.each(func(p, g *engine.Tensor) {
		have := a.slots[p]
		steps := have.steps + 1
		// Both start at 0, which the powers of beta make up for. The parameter moves
		// by Rate·(mean/c1)/(sqrt(square/c2) + Epsilon).
		c1 := 1 - math.Pow(float64(a.Beta1), float64(steps))
		c2 := 1 - math.Pow(float64(a.Beta2), float64(steps))
		engine.Adam(a.ops, p, g, have.tensors[0], have.tensors[1], engine.AdamFactors{
			KeepMean: a.Beta1, TakeMean: 1 - a.Beta1,
			KeepSquare: a.Beta2, TakeSquare: 1 - a.Beta2,
			Keep: 1 - a.Rate*a.Decay, Move: float32(float64(a.Rate) / c1),
			Root: float32(1 / math.Sqrt(c2)), Epsilon: a.Epsilon,
		})
		have.steps = steps
	})
}
