package nn

import (
	"fmt"
	"math"

	"github.com/memdiag/memdiag/engine"
)

// MultiHeadAttention mixes the positions of a sequence: each looks at all others,
// or with Causal at itself and those before it, once a head (Vaswani et al. 2017).
type MultiHeadAttention struct {
	Query, Key, Value, Out *Linear // [d d]
	Heads                  int     // each of width d/Heads
	Causal                 bool
}

// NewMultiHeadAttention draws the parameters of a layer of width d, which must be
// a multiple of heads.
func NewMultiHeadAttention(o engine.Ops, r *engine.Random, d, heads int, causal bool) *MultiHeadAttention {
	if heads < 1 || d%heads != 0 {
		misuse("attention", fmt.Sprintf("a width of %d does not part into %d heads", d, heads))
	}
	linear := func() *Linear { return NewLinear(o, r, d, d) }
	return &MultiHeadAttention{Query: linear(), Key: linear(), Value: linear(), Out: linear(), Heads: heads, Causal: causal}
}

// NewCache makes a cache of this layer for n sequences of up to capacity
// positions. The caller owes its Release.
func (a *MultiHeadAttention) NewCache(o engine.Ops, n, capacity int) *KVCache {
	return NewKVCache(o, n, a.Heads, capacity, a.Out.Weight.Dim(0)/a.Heads)
}

// Forward maps x [n t d] to [n t d]. With a cache, x are the next t positions of
// n sequences, which see those in the cache as well and join them; that is for
// Valid() operations, since a cache has no gradient. cache may be nil.
func (a *MultiHeadAttention) Forward(o engine.Ops, x *engine.Tensor, cache *KVCache) *engine.Tensor {
	d := a.Out.Weight.Dim(0)
	if x.Shape().Rank != 3 || x.Dim(2) != d {
		misuse("attention", fmt.Sprintf("sequences [n t %d] are needed", d), x)
	}
	n, t := x.Dim(0), x.Dim(1)
	return engine.Tidy(o, func() *engine.Tensor {
		queries, keys, values := a.split(o, a.Query.Forward(o, x)), a.split(o, a.Key.Forward(o, x)), a.split(o, a.Value.Forward(o, x))
		if cache != nil {
			keys, values = cache.extend(o.Valid(), keys, values)
		}
		scale := float32(1 / math.Sqrt(float64(d/a.Heads)))
		mixed := engine.Attention(o, queries, keys, values, scale, a.Causal) // [n heads t d/heads]
		return a.Out.Forward(o, o.Reshape(o.Permute(mixed, 0, 2, 1, 3), n, t, d))
	})
}

// split parts [n t d] into heads: [n heads t d/heads].
func (a *MultiHeadAttention) split(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	n, t, d := x.Dim(0), x.Dim(1), x.Dim(2)
	return o.Permute(o.Reshape(x, n, t, a.Heads, d/a.Heads), 0, 2, 1, 3)
}

func (a *MultiHeadAttention) parts() Parts {
	return Parts{{"query", a.Query}, {"key", a.Key}, {"value", a.Value}, {"out", a.Out}}
}

// Parameters lists those of query, key, value and out.
func (a *MultiHeadAttention) Parameters() []*engine.Tensor { return a.parts().Parameters() }

// State names those of query, key, value and out.
func (a *MultiHeadAttention) State() []engine.Named { return a.parts().State() }
