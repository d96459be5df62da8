package nn

import "github.com/memdiag/memdiag/engine"

// TransformerBlock is attention, then a two-layer network at each position, both
// on a standardized input and added to it (pre-norm):
//
//	x += drop(attention(norm1(x)))
//	x += drop(down(relu(up(norm2(x)))))
type TransformerBlock struct {
	Norm1     *LayerNorm // [d]
	Attention *MultiHeadAttention
	Norm2     *LayerNorm // [d]
	Up        *Linear    // [d hidden]
	Down      *Linear    // [hidden d]
	Dropout   Dropout
}

// NewTransformerBlock draws a causal block's parameters, without dropout.
func NewTransformerBlock(o engine.Ops, r *engine.Random, d, heads, hidden int) *TransformerBlock {
	return &TransformerBlock{
		Norm1:     NewLayerNorm(o, d),
		Attention: NewMultiHeadAttention(o, r, d, heads, true),
		Norm2:     NewLayerNorm(o, d),
		Up:        NewLinear(o, r, d, hidden),
		Down:      NewLinear(o, r, hidden, d),
	}
}

// Forward maps x [n t d] to [n t d]; cache is the attention's, and may be nil.
func (b *TransformerBlock) Forward(o engine.Ops, x *engine.Tensor, mode Mode, cache *KVCache) *engine.Tensor {
	return engine.Tidy(o, func() *engine.Tensor {
		mixed := b.Attention.Forward(o, b.Norm1.Forward(o, x), cache)
		x := o.Add(x, b.Dropout.Forward(o, mixed, mode))
		each := b.Down.Forward(o, o.ReLU(b.Up.Forward(o, b.Norm2.Forward(o, x))))
		return o.Add(x, b.Dropout.Forward(o, each, mode))
	})
}

func (b *TransformerBlock) parts() Parts {
	return Parts{{"norm1", b.Norm1}, {"attention", b.Attention}, {"norm2", b.Norm2}, {"up", b.Up}, {"down", b.Down}}
}

// Parameters lists those of the parts, in the order of computation.
func (b *TransformerBlock) Parameters() []*engine.Tensor { return b.parts().Parameters() }

// State names those of the parts, in the order of computation.
func (b *TransformerBlock) State() []engine.Named { return b.parts().State() }
