package nn

import "github.com/memdiag/memdiag/engine"

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
	engine.Check("linear", x, l.Weight, l.Bias)
	if w := l.Weight.Shape(); w.Rank != 2 || l.Bias.Shape() != engine.ShapeOf(w.Dims[1]) || x.Shape().Rank == 0 || x.Dim(-1) != w.Dims[0] {
		misuse("linear", "rows [… in], a weight [in out] and a bias [out] are needed", x, l.Weight, l.Bias)
	}
	return o.Add(o.MatMul(x, l.Weight), l.Bias)
}

// Parameters lists weight and bias.
func (l *Linear) Parameters() []*engine.Tensor { return []*engine.Tensor{l.Weight, l.Bias} }

// State names weight and bias.
func (l *Linear) State() []engine.Named {
	return []engine.Named{{Name: "weight", Tensor: l.Weight}, {Name: "bias", Tensor: l.Bias}}
}
