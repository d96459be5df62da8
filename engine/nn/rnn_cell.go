package nn

import "github.com/memdiag/memdiag/engine"

// RNNCell is one step of a plain recurrent network (Elman 1990):
//
//	h' = tanh(input(x) + hidden(h))
type RNNCell struct {
	Input  *Linear // [in d]
	Hidden *Linear // [d d]
}

// NewRNNCell draws the parameters of a cell with a state of width d.
func NewRNNCell(o engine.Ops, r *engine.Random, in, d int) *RNNCell {
	return &RNNCell{Input: NewLinear(o, r, in, d), Hidden: NewLinear(o, r, d, d)}
}

// Forward maps x [n in] and the state h [n d] to the next state [n d]. The result
// carries the graph of all steps before; Detach it where that is to end.
func (c *RNNCell) Forward(o engine.Ops, x, h *engine.Tensor) *engine.Tensor {
	return engine.Tidy(o, func() *engine.Tensor { return o.Tanh(o.Add(c.Input.Forward(o, x), c.Hidden.Forward(o, h))) })
}

func (c *RNNCell) parts() Parts { return Parts{{"input", c.Input}, {"hidden", c.Hidden}} }

// Parameters lists those of input and hidden.
func (c *RNNCell) Parameters() []*engine.Tensor { return c.parts().Parameters() }

// State names those of input and hidden.
func (c *RNNCell) State() []engine.Named { return c.parts().State() }
