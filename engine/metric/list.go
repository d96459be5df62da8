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

// Clone is a list of the same tensors with state of its own.
func (l *List) Clone() *List {
	c := NewList(l.ops)
	c.Merge(l)
	return c
}

// Merge appends what another list holds, by way of the host, since its device may
// be another; it waits for that one. Neither may be in use elsewhere. Where the
// device is too full, nothing is appended.
func (l *List) Merge(other *List) {
	scope := l.ops.Begin()
	defer scope.End()
	l.keep(l.copies(other))
}

// copies are those of all that another list holds, for the innermost scope.
func (l *List) copies(other *List) []*engine.Tensor {
	copies := make([]*engine.Tensor, len(other.parts))
	for i, t := range other.parts {
		dims := t.Shape().Slice()
		if t.DType() == engine.Int32 {
			copies[i] = l.ops.FromInts(other.ops.Ints(t), dims...)
		} else {
			copies[i] = l.ops.FromFloats(other.ops.Floats(t), dims...)
		}
	}
	return copies
}

// keep appends tensors, which the list owns from then on.
func (l *List) keep(parts []*engine.Tensor) {
	for _, t := range parts {
		l.parts = append(l.parts, t.Keep())
	}
}
