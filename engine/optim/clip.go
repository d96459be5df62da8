package optim

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
)

// ClipNorm scales the gradients of parameters in place so that their norm, taken
// as one vector, is at most limit. It returns the norm before, a scalar; call it
// between Backward and Step. Nothing waits for the device. Parameters without a
// gradient do not count, and one that is listed twice counts once. Where the device
// is too full it panics with all gradients as they were; so it does where limit is
// below 0.
func ClipNorm(o engine.Ops, parameters []*engine.Tensor, limit float32) *engine.Tensor {
	if !(limit >= 0) { // it would turn the gradients round, or make NaN of them
		panic(&engine.Error{Op: "clip norm", Reason: fmt.Sprintf("the limit %v is not a length", limit)})
	}
	v := o.Valid()
	return engine.Tidy(v, func() *engine.Tensor {
		total := v.Full(0)
		var gradients []*engine.Tensor
		for _, p := range parameters {
			if g := autodiff.Grad(p); g != nil && !slices.Contains(gradients, g) {
				gradients = append(gradients, g)
				total = v.Add(total, engine.Tidy(v, func() *engine.Tensor { return v.Sum(v.Mul(g, g)) }))
			}
		}
		norm := v.Sqrt(total)
		// PyTorch's rule: the small number keeps a norm of 0 from dividing by it.
		scale := v.Div(v.Full(limit), engine.Shift(v, norm, 1e-6))
		scale = v.Where(v.Less(scale, v.Full(1)), scale, v.Full(1))
		for _, g := range gradients { // takes no memory
			engine.Rescale(v, g, scale)
		}
		return norm
	})
}
