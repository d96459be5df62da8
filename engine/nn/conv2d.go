package nn

import "github.com/memdiag/memdiag/engine"

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
	return engine.Convolve(o, x, c.Filters, c.Bias, c.Window)
}

// Parameters lists filters and bias.
func (c *Conv2d) Parameters() []*engine.Tensor { return []*engine.Tensor{c.Filters, c.Bias} }

// State names filters and bias.
func (c *Conv2d) State() []engine.Named {
	return []engine.Named{{Name: "filters", Tensor: c.Filters}, {Name: "bias", Tensor: c.Bias}}
}
