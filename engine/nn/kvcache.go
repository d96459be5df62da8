package nn

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// KVCache holds the keys and values of the positions that one attention layer has
// seen, so that decoding step by step computes each of them once. Its two blocks
// have their full size from the start and are owned by the cache, never by a
// graph. Whoever made it owes a Release.
type KVCache struct {
	Keys   *engine.Tensor // [n heads capacity d/heads], zero from Length on
	Values *engine.Tensor // the same
	Length int            // positions that are filled
}

// NewKVCache makes an empty cache for n sequences.
func NewKVCache(o engine.Ops, n, heads, capacity, width int) *KVCache {
	v := o.Valid()
	keys := v.Full(0, n, heads, capacity, width)
	values := v.Full(0, n, heads, capacity, width)
	return &KVCache{Keys: keys.Own(snapshot.OwnedByCache), Values: values.Own(snapshot.OwnedByCache)}
}

// extend writes keys and values [n heads t width] after the last position and
// returns views of all that is filled, [n heads Length width].
func (c *KVCache) extend(v engine.Ops, keys, values *engine.Tensor) (allKeys, allValues *engine.Tensor) {
	const op = "key-value cache"
	if keys.History() != nil || values.History() != nil {
		misuse(op, "what is cached cannot be differentiated; decode with Valid()", keys)
	}
	from, capacity := c.Length, c.Keys.Dim(2)
	to := from + keys.Dim(2)
	if keys.Shape().With(2, 0) != c.Keys.Shape().With(2, 0) {
		misuse(op, fmt.Sprintf("the cache holds %v", c.Keys.Shape()), keys)
	}
	if to > capacity {
		misuse(op, fmt.Sprintf("%d of %d positions are filled; Reset it, or make a longer one", from, capacity), keys)
	}
	v.Assign(v.Slice(c.Keys, 2, from, to), keys)
	v.Assign(v.Slice(c.Values, 2, from, to), values)
	c.Length = to
	return v.Slice(c.Keys, 2, 0, to), v.Slice(c.Values, 2, 0, to)
}

// Reset forgets all positions and keeps the memory.
func (c *KVCache) Reset() { c.Length = 0 }

// Release gives the memory back. The cache cannot be used after it.
func (c *KVCache) Release() {
	c.Keys.Release()
	c.Values.Release()
}
