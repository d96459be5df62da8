// Package cast computes products in lower precision, and keeps the lowered copies
// of parameters for as long as a context lasts: what mixed-precision training
// calls autocast, and its cache.
//
// Lower precision is modelled, not gained: elements are rounded to the 11
// significant bits that float16 has, and are stored as float32, whose range they
// keep. So losses need no scaling, and nothing becomes faster or smaller.
package cast

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// Ops decorates another Ops, usually one with gradients: MatMul and Conv2d see
// rounded operands, all else passes through. Gradients pass the rounding as if it
// were not there.
//
// A context is to be narrow: Open it before a forward pass, Close it after. The
// copy of a parameter is made when a product first needs it, and serves until
// Close, also if the parameter is changed meanwhile; once Backward has gone
// through it, it carries no gradient any more, and a second Backward says so.
//
// A copy that was made where nothing is recorded, as in NoGrad, serves only there;
// a pass that records makes its own in place of it, which then serves both. A
// decorator around autodiff's that has no Recording method rounds in each product
// of a pass without record. In an autodiff Checkpoint each product rounds, since it
// is to do the same when it is run again, with the context closed.
type Ops struct {
	engine.Ops
	copies map[*engine.Tensor]lowered // the zero lowered until the parameter's copy is made
}

// lowered is the copy of a parameter.
type lowered struct {
	tensor *engine.Tensor
	of     engine.History // where its gradient goes: the parameter's history; nil if it was not recorded
}

var _ engine.Ops = (*Ops)(nil)

// Open begins a context around inner whose cache serves these parameters. It owes
// a Close.
func Open(inner engine.Ops, parameters []*engine.Tensor) *Ops {
	o := &Ops{Ops: inner, copies: make(map[*engine.Tensor]lowered, len(parameters))}
	for _, p := range parameters {
		o.copies[p] = lowered{}
	}
	return o
}

// Cached counts the copies that the context holds. Their blocks count for the
// cache.
func (o *Ops) Cached() int {
	n := 0
	for _, c := range o.copies {
		if c.tensor != nil {
			n++
		}
	}
	return n
}

// Close releases the copies. A graph that needs them for a Backward still to come
// holds them on its own. Products after it round without a cache.
func (o *Ops) Close() {
	for _, c := range o.copies {
		if c.tensor != nil {
			c.tensor.Release()
		}
	}
	o.copies = nil
}

// MatMul multiplies rounded operands; see engine.Ops.
func (o *Ops) MatMul(a, b *engine.Tensor) *engine.Tensor {
	return engine.Tidy(o.Ops, func() *engine.Tensor { return o.Ops.MatMul(o.lower(a), o.lower(b)) })
}

// Conv2d correlates rounded operands; see engine.Ops.
func (o *Ops) Conv2d(x, filters *engine.Tensor, w engine.Window) *engine.Tensor {
	return engine.Tidy(o.Ops, func() *engine.Tensor { return o.Ops.Conv2d(o.lower(x), o.lower(filters), w) })
}

// Recording reports whether products with tracked tensors may be recorded now.
func (o *Ops) Recording() bool {
	switch inner := o.Ops.(type) {
	case *engine.Eager:
		return false
	case interface{ Recording() bool }:
		return inner.Recording()
	}
	return true
}

// Checkpointing reports whether products are part of a Checkpoint now.
func (o *Ops) Checkpointing() bool {
	inner, ok := o.Ops.(interface{ Checkpointing() bool })
	return ok && inner.Checkpointing()
}

// lower returns a parameter's copy from the cache, or a temporary one of any other
// tensor.
func (o *Ops) lower(t *engine.Tensor) *engine.Tensor {
	if o.Checkpointing() {
		return Round(o.Ops, t)
	}
	kept, parameter := o.copies[t]
	plain := !o.Recording()
	// A copy from before the parameter was tracked, or tracked anew, leads its
	// gradient elsewhere.
	var of engine.History
	if !plain && autodiff.Tracked(t) {
		of = t.History()
	}
	if kept.tensor != nil && (plain || kept.of == of) {
		return kept.tensor
	}
	rounded := Round(o.Ops, t)
	if !parameter || of != nil && !autodiff.Tracked(rounded) {
		return rounded
	}
	if kept.tensor != nil {
		kept.tensor.Release()
	}
	o.copies[t] = lowered{rounded.Own(snapshot.OwnedByCache), of}
	return rounded
}

// Round rounds every element to 11 significant bits, the nearest; of two equally
// near either. Its gradient is the identity's. Elements are below 2^114 in
// magnitude; subnormal numbers are rounded as if they had more range.
func Round(o engine.Ops, t *engine.Tensor) *engine.Tensor {
	v := o.Valid()
	return engine.Tidy(o, func() *engine.Tensor {
		// What the rounding takes off is computed without a gradient and is exact, as is
		// the sum: a splitting by Dekker (1971) at the 13 bits that are to go.
		off := engine.Tidy(v, func() *engine.Tensor {
			large := engine.Scale(v, t, 1<<13+1)
			return v.Sub(v.Sub(large, v.Sub(large, t)), t)
		})
		return o.Add(t, off)
	})
}
