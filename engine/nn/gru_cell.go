package nn

import "github.com/memdiag/memdiag/engine"

// GRUCell is one step of a gated recurrent unit (Cho et al. 2014), in the form
// that PyTorch computes. With the thirds of input(x) and of hidden(h) as xr, xz, xn
// and hr, hz, hn:
//
//	r = σ(xr + hr)
//	z = σ(xz + hz)
//	n = tanh(xn + r·hn)
//	h' = n + z·(h - n)
type GRUCell struct {
	Input  *Linear // [in 3d]
	Hidden *Linear // [d 3d]
}

// NewGRUCell draws the parameters of a cell with a state of width d.
func NewGRUCell(o engine.Ops, r *engine.Random, in, d int) *GRUCell {
	return &GRUCell{Input: NewLinear(o, r, in, 3*d), Hidden: NewLinear(o, r, d, 3*d)}
}

// Forward maps x [n in] and the state h [n d] to the next state [n d]. The result
// carries the graph of all steps before; Detach it where that is to end.
func (c *GRUCell) Forward(o engine.Ops, x, h *engine.Tensor) *engine.Tensor {
	stateFits("gru cell", x, h, c.Hidden)
	d := h.Dim(1)
	return engine.Tidy(o, func() *engine.Tensor {
		fromX, fromH := c.Input.Forward(o, x), c.Hidden.Forward(o, h)
		third := func(t *engine.Tensor, i int) *engine.Tensor { return o.Slice(t, 1, i*d, (i+1)*d) }
		gates := o.Sigmoid(o.Add(o.Slice(fromX, 1, 0, 2*d), o.Slice(fromH, 1, 0, 2*d)))
		reset, update := third(gates, 0), third(gates, 1)
		fresh := o.Tanh(o.Add(third(fromX, 2), o.Mul(reset, third(fromH, 2))))
		return o.Add(fresh, o.Mul(update, o.Sub(h, fresh)))
	})
}

func (c *GRUCell) parts() Parts { return Parts{{"input", c.Input}, {"hidden", c.Hidden}} }

// Parameters lists those of input and hidden.
func (c *GRUCell) Parameters() []*engine.Tensor { return c.parts().Parameters() }

// State names those of input and hidden.
func (c *GRUCell) State() []engine.Named { return c.parts().State() }
