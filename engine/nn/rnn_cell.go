package nn

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
)

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
	stateFits("rnn cell", x, h, c.Hidden)
	return engine.Tidy(o, func() *engine.Tensor { return o.Tanh(o.Add(c.Input.Forward(o, x), c.Hidden.Forward(o, h))) })
}

// stateFits panics unless x [n in] and a state h [n d] go together, for a layer
// [d …] of the state. One that stretched would hide that a row is missing.
func stateFits(op string, x, h *engine.Tensor, hidden *Linear) {
	engine.Check(op, x, h)
	if x.Shape().Rank != 2 || h.Shape() != engine.ShapeOf(x.Dim(0), hidden.Weight.Dim(0)) {
		misuse(op, fmt.Sprintf("x [n in] and a state [n %d] are needed", hidden.Weight.Dim(0)), x, h)
	}
}

func (c *RNNCell) parts() Parts { return Parts{{"input", c.Input}, {"hidden", c.Hidden}} }

// Parameters lists those of input and hidden.
func (c *RNNCell) Parameters() []*engine.Tensor { return c.parts().Parameters() }

// State names those of input and hidden.
func (c *RNNCell) State() []engine.Named { return c.parts().State() }
