// Package nn holds layers: plain structs of parameters with a Forward each.
//
// Parameters join the innermost scope when they are made, as all tensors do, so
// that a model that does not fit its device leaves nothing behind. Keep takes the
// finished model's out.
package nn

import (
	"math"

	"github.com/memdiag/memdiag/engine"
)

// Module is anything with parameters. Forward is not part of it: layers differ in
// what goes in and out.
type Module interface {
	// Parameters lists the trainable tensors, always in the same order.
	Parameters() []*engine.Tensor
}

// Parameters lists those of several modules, in order.
func Parameters(modules ...Module) []*engine.Tensor {
	var all []*engine.Tensor
	for _, m := range modules {
		all = append(all, m.Parameters()...)
	}
	return all
}

// Keep takes a module's parameters out of their scopes: the caller owes a
// Release.
func Keep(m Module) {
	for _, p := range m.Parameters() {
		p.Keep()
	}
}

// Release gives a module's parameters back, with the gradients in them.
func Release(m Module) {
	for _, p := range m.Parameters() {
		p.Release()
	}
}

// uniform draws from [-bound, bound).
func uniform(o engine.Ops, r *engine.Random, bound float64, dims ...int) *engine.Tensor {
	return engine.Tidy(o, func() *engine.Tensor {
		return engine.Scale(o, engine.Shift(o, o.Rand(r.Draw(), dims...), -0.5), float32(2*bound))
	})
}

// lecun is the bound of a uniform draw under which a layer's output has its
// input's variance (LeCun et al. 1998).
func lecun(fanIn int) float64 { return math.Sqrt(3 / float64(fanIn)) }

// Linear is a fully connected layer.
type Linear struct {
	Weight *engine.Tensor // [in out]
	Bias   *engine.Tensor // [out]
}

// NewLinear draws a layer's weights; its bias is zero.
func NewLinear(o engine.Ops, r *engine.Random, in, out int) *Linear {
	return &Linear{Weight: uniform(o, r, lecun(in), in, out), Bias: o.Full(0, out)}
}

// Forward maps x [… in] to [… out].
func (l *Linear) Forward(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	return o.Add(o.MatMul(x, l.Weight), l.Bias)
}

// Parameters lists weight and bias.
func (l *Linear) Parameters() []*engine.Tensor { return []*engine.Tensor{l.Weight, l.Bias} }

// Conv2d is a convolution with a bias per channel.
type Conv2d struct {
	Filters *engine.Tensor // [out in kh kw]
	Bias    *engine.Tensor // [out]
	Window  engine.Window
}

// NewConv2d draws a layer's filters; its bias is zero.
func NewConv2d(o engine.Ops, r *engine.Random, in, out int, w engine.Window) *Conv2d {
	filters := uniform(o, r, lecun(in*w.Kernel[0]*w.Kernel[1]), out, in, w.Kernel[0], w.Kernel[1])
	return &Conv2d{Filters: filters, Bias: o.Full(0, out), Window: w}
}

// Forward maps x [n in h w] to [n out oh ow].
func (c *Conv2d) Forward(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	return o.Add(o.Conv2d(x, c.Filters, c.Window), o.Reshape(c.Bias, 1, c.Bias.Dim(0), 1, 1))
}

// Parameters lists filters and bias.
func (c *Conv2d) Parameters() []*engine.Tensor { return []*engine.Tensor{c.Filters, c.Bias} }
