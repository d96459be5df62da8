package model

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
)

// Sizes of a Transformer.
const (
	TransformerVocabulary = 1000
	TransformerWidth      = 128
	TransformerLength     = 64 // positions, at most
	transformerHeads      = 4
	transformerHidden     = 512
	transformerBlocks     = 2
)

// Transformer predicts the next of a sequence of tokens:
//
//	x = Embedding(1000, 128)(ids) + Embedding(64, 128)(position)
//	2 times, causal, pre-norm, no dropout:
//	    x += Out(softmax(Query(y)·Key(y)ᵀ/√32 + mask)·Value(y)), y = LayerNorm(128)(x), 4 heads of 32
//	    x += Linear(512, 128)(ReLU(Linear(128, 512)(LayerNorm(128)(x))))
//	logits = Linear(128, 1000)(LayerNorm(128)(x))
//
// Query, Key, Value and Out are Linear(128, 128) with bias; layer norms have
// epsilon 1e-5. The head does not share the embedding's table.
type Transformer struct {
	Tokens    *nn.Embedding
	Positions *nn.Embedding
	Blocks    []*nn.TransformerBlock
	Norm      *nn.LayerNorm
	Head      *nn.Linear
}

// NewTransformer draws the parameters; see package nn for who owns them.
func NewTransformer(o engine.Ops, r *engine.Random) *Transformer {
	m := &Transformer{
		Tokens:    nn.NewEmbedding(o, r, TransformerVocabulary, TransformerWidth),
		Positions: nn.NewEmbedding(o, r, TransformerLength, TransformerWidth),
	}
	for range transformerBlocks {
		m.Blocks = append(m.Blocks, nn.NewTransformerBlock(o, r, TransformerWidth, transformerHeads, transformerHidden))
	}
	m.Norm = nn.NewLayerNorm(o, TransformerWidth)
	m.Head = nn.NewLinear(o, r, TransformerWidth, TransformerVocabulary)
	return m
}

// NewCaches makes a cache for each block, for n sequences. The caller owes their
// Release.
func (m *Transformer) NewCaches(o engine.Ops, n int) []*nn.KVCache {
	var caches []*nn.KVCache
	for _, b := range m.Blocks {
		caches = append(caches, b.Attention.NewCache(o, n, TransformerLength))
	}
	return caches
}

// Forward maps ids int32 [n t] to the logits of what follows each, [n t 1000].
// With caches, one for each block, ids go on from the positions in them; see
// nn.MultiHeadAttention. caches may be nil.
func (m *Transformer) Forward(o engine.Ops, ids *engine.Tensor, mode nn.Mode, caches []*nn.KVCache) *engine.Tensor {
	return engine.Tidy(o, func() *engine.Tensor {
		first := 0
		if caches != nil {
			first = caches[0].Length
		}
		x := o.Add(m.Tokens.Forward(o, ids), m.Positions.Forward(o, positions(o, first, ids.Dim(1))))
		for i, b := range m.Blocks {
			var cache *nn.KVCache
			if caches != nil {
				cache = caches[i]
			}
			x = b.Forward(o, x, mode, cache)
		}
		return m.Head.Forward(o, m.Norm.Forward(o, x))
	})
}

// positions counts t positions from first.
func positions(o engine.Ops, first, t int) *engine.Tensor {
	at := make([]int32, t)
	for i := range at {
		at[i] = int32(first + i)
	}
	return o.FromInts(at, t)
}

func (m *Transformer) parts() nn.Parts {
	p := nn.Parts{{Name: "tokens", Module: m.Tokens}, {Name: "positions", Module: m.Positions}}
	for i, b := range m.Blocks {
		p = append(p, nn.Part{Name: fmt.Sprintf("blocks.%d", i), Module: b})
	}
	return append(p, nn.Part{Name: "norm", Module: m.Norm}, nn.Part{Name: "head", Module: m.Head})
}

// Parameters lists those of the layers, in the order of computation.
func (m *Transformer) Parameters() []*engine.Tensor { return m.parts().Parameters() }

// State names those of the layers, in the order of computation.
func (m *Transformer) State() []engine.Named { return m.parts().State() }
