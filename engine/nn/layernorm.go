package nn

import "github.com/memdiag/memdiag/engine"

// LayerNorm standardizes the innermost axis, then stretches and shifts it.
type LayerNorm struct {
	Gain    *engine.Tensor // [d]
	Bias    *engine.Tensor // [d]
	Epsilon float32        // added to the variance
}

// NewLayerNorm makes a layer of width d that only standardizes: gain 1, bias 0,
// epsilon 1e-5.
func NewLayerNorm(o engine.Ops, d int) *LayerNorm {
	return &LayerNorm{Gain: o.Full(1, d), Bias: o.Full(0, d), Epsilon: 1e-5}
}

// Forward maps x [… d] to [… d].
func (l *LayerNorm) Forward(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	return engine.LayerNorm(o, x, l.Gain, l.Bias, l.Epsilon)
}

// Parameters lists gain and bias.
func (l *LayerNorm) Parameters() []*engine.Tensor { return []*engine.Tensor{l.Gain, l.Bias} }

// State names gain and bias.
func (l *LayerNorm) State() []engine.Named {
	return []engine.Named{{Name: "gain", Tensor: l.Gain}, {Name: "bias", Tensor: l.Bias}}
}
