package metric

import "github.com/memdiag/memdiag/engine"

// List holds a copy of every tensor that it was given, and joins them when it is
// asked: for what sums do not show. It grows until Reset.
type List struct {
	ops   engine.Ops
	parts []*engine.Tensor
}

// NewList returns an empty list.
func NewList(o engine.Ops) *List { return &List{ops: o.Valid()} }

// Update appends a copy of a tensor [m …], which stays the caller's. All tensors
// of a list agree in element type and in all extents but the first.
func (l *List) Update(t *engine.Tensor) { l.parts = append(l.parts, l.ops.Copy(t).Keep()) }

// Len counts the tensors that are held.
func (l *List) Len() int { return len(l.parts) }

// Compute joins what is held along the first axis, in the order of the updates.
// The result is the caller's scope's; nil of an empty list.
func (l *List) Compute() *engine.Tensor {
	if len(l.parts) == 0 {
		return nil
	}
	return l.ops.Concat(0, l.parts...)
}

// Reset forgets everything and gives the state back.
func (l *List) Reset() {
	for _, t := range l.parts {
		t.Release()
	}
	l.parts = nil
}
