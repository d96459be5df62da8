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

// Update takes the parameters' values of this moment up. Where the device is too
// full it panics with all averages as they were.
func (e *EMA) Update() {
	e.scoped(func() {
		keep := e.ops.Full(e.Decay)
		fresh := make(map[*engine.Tensor]*engine.Tensor)
		for _, p := range e.parameters {
			if e.Average(p) == nil && fresh[p] == nil {
				fresh[p] = e.ops.Copy(p)
			}
		}
		// From here on nothing takes memory.
		for _, p := range e.parameters {
			if average := e.Average(p); average != nil {
				engine.Approach(e.ops, average, p, keep)
			}
		}
		for p, average := range fresh {
			e.own(p, 0, average)
		}
	})
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
// Where the device is too full it panics with all as it was.
func (e *EMA) Swap() {
	e.scoped(func() {
		most := 0
		for _, p := range e.parameters {
			most = max(most, p.Shape().Elements())
		}
		room := e.ops.Full(0, most)
		for _, p := range e.parameters {
			average := e.Average(p)
			if average == nil {
				continue
			}
			value := e.ops.Reshape(e.ops.Slice(room, 0, 0, p.Shape().Elements()), p.Shape().Slice()...)
			e.ops.Assign(value, p)
			e.ops.Assign(p, average)
			e.ops.Assign(average, value)
		}
	})
}
