package optim

import "github.com/memdiag/memdiag/engine"

// EMA follows parameters with an exponential moving average of each: at each
// Update the average becomes Decay·average + (1-Decay)·parameter. Its state is the
// "average". The first Update copies the parameters, so memory rises when the
// averaging starts.
type EMA struct {
	state
	Decay float32
}

// NewEMA returns the averages of these parameters, which the caller goes on
// owning. It holds no device memory until the first Update.
func NewEMA(o engine.Ops, parameters []*engine.Tensor, decay float32) *EMA {
	return &EMA{state: newState(o, parameters, false, "average"), Decay: decay}
}

// Update takes the parameters' values of this moment up.
func (e *EMA) Update() {
	for _, p := range e.parameters {
		e.scoped(func() {
			have, ok := e.slots[p]
			if !ok {
				e.own(p, 0, e.ops.Copy(p))
				return
			}
			average := have.tensors[0]
			e.ops.Assign(average, blend(e.ops, average, p, e.Decay))
		})
	}
}

// Average returns the average of a parameter, nil before its first Update. It
// stays the EMA's.
func (e *EMA) Average(p *engine.Tensor) *engine.Tensor {
	if have, ok := e.slots[p]; ok {
		return have.tensors[0]
	}
	return nil
}

// Swap exchanges the values of the parameters and of their averages: to evaluate
// with the averages, swap before and after. Parameters without an average stay.
func (e *EMA) Swap() {
	for _, p := range e.parameters {
		e.scoped(func() {
			if average := e.Average(p); average != nil {
				value := e.ops.Copy(p)
				e.ops.Assign(p, average)
				e.ops.Assign(average, value)
			}
		})
	}
}
