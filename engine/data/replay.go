package data

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// Replay keeps experience on the device to train on it again: a ring that drops
// its oldest item for a new one once it is full. Its blocks count for the cache.
// One goroutine uses a buffer.
//
// A recorded tensor in it keeps its graph, and all that the graph saved, until
// its item is dropped: Detach what is to be remembered, or compute it with
// Valid().
type Replay struct {
	capacity int
	items    [][]*engine.Tensor // a ring once it is full
	oldest   int
}

// NewReplay returns an empty buffer for so many items; 0 is without bound.
func NewReplay(capacity int) *Replay { return &Replay{capacity: max(0, capacity)} }

// Len counts the items.
func (r *Replay) Len() int { return len(r.items) }

// Add takes the tensors of one item over: state, action, reward, whatever belongs
// together. The buffer releases them once it drops the item. It panics with an
// *engine.Error, and takes none of them over, if there are none, if one is nil,
// released or there twice, or if they differ from the earlier items' in number,
// type or shape.
func (r *Replay) Add(item ...*engine.Tensor) {
	first := item
	if len(r.items) > 0 {
		first = r.items[0]
	}
	if len(item) == 0 || len(item) != len(first) {
		panic(&engine.Error{Op: "replay add", Reason: fmt.Sprintf("an item of %d tensors, where at least one and as many as before are needed", len(item))})
	}
	engine.Check("replay add", item...)
	for i, t := range item {
		if slices.Contains(item[:i], t) {
			panic(&engine.Error{Op: "replay add", Shapes: []engine.Shape{t.Shape()}, Reason: fmt.Sprintf("tensor %d is there twice; Retain gives a second handle", i)})
		}
		if t.Shape() != first[i].Shape() || t.DType() != first[i].DType() {
			panic(&engine.Error{Op: "replay add", Shapes: []engine.Shape{t.Shape(), first[i].Shape()}, Reason: fmt.Sprintf("tensor %d differs from earlier items", i)})
		}
	}
	kept := make([]*engine.Tensor, len(item))
	for i, t := range item {
		kept[i] = t.Own(snapshot.OwnedByCache)
	}
	if r.capacity == 0 || len(r.items) < r.capacity {
		r.items = append(r.items, kept)
		return
	}
	release(r.items[r.oldest])
	r.items[r.oldest] = kept
	r.oldest = (r.oldest + 1) % r.capacity
}

// Sample draws n items with replacement and stacks them: of each tensor of an
// item, one of shape [n …] in the innermost open scope. It panics with an
// *engine.Error on an empty buffer.
func (r *Replay) Sample(o engine.Ops, rng *rand.Rand, n int) []*engine.Tensor {
	return r.SampleLast(o, rng, n, len(r.items))
}

// SampleLast is Sample from the newest items only, as many as last says or all.
func (r *Replay) SampleLast(o engine.Ops, rng *rand.Rand, n, last int) []*engine.Tensor {
	last = min(last, len(r.items))
	if last < 1 || n < 1 {
		panic(&engine.Error{Op: "replay sample", Reason: fmt.Sprintf("%d of the last %d of %d items were asked for", n, last, len(r.items))})
	}
	drawn := make([][]*engine.Tensor, n)
	for i := range drawn {
		age := rng.IntN(last)
		drawn[i] = r.items[(r.oldest+len(r.items)-1-age)%len(r.items)]
	}
	var batch []*engine.Tensor
	for field, t := range r.items[0] {
		row := append([]int{1}, t.Shape().Slice()...)
		batch = append(batch, engine.Tidy(o, func() *engine.Tensor {
			rows := make([]*engine.Tensor, n)
			for i, item := range drawn {
				rows[i] = o.Reshape(item[field], row...)
			}
			return o.Concat(0, rows...)
		}))
	}
	return batch
}

// Release gives all items back and leaves the buffer empty.
func (r *Replay) Release() {
	for _, item := range r.items {
		release(item)
	}
	r.items, r.oldest = nil, 0
}

func release(item []*engine.Tensor) {
	for _, t := range item {
		t.Release()
	}
}
