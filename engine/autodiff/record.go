package autodiff

import (
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// record gives out, the result of op, a node. inputs are all operands that a
// gradient can reach; saves is what backward reads, nil where it does not need it.
func (o *Ops) record(op string, out *engine.Tensor, inputs, saves []*engine.Tensor, backward func(*pass)) *engine.Tensor {
	if o.replay != nil {
		o.replay.replayed(op, out, saves)
		return out
	}
	n := &Node{op: op, backward: backward, site: o.inner.Device().Site()}
	n.inputs = n.twoInputs[:0]
	for _, t := range inputs {
		n.inputs = append(n.inputs, nodeOf(t))
	}
	n.save(saves, inputs, out, o.segment == nil)
	if o.segment != nil {
		o.segment.recorded(n, saves)
	}
	o.attach(out, n)
	for _, h := range o.forward.list {
		h.f(op, out)
	}
	return out
}

// plain is record for a result that no gradient goes through.
func (o *Ops) plain(op string, out *engine.Tensor) *engine.Tensor {
	o.tape.Plain(op, out)
	return out
}

// attach hands a node to the tape, and its history to its tensor.
func (o *Ops) attach(t *engine.Tensor, n *Node) {
	// Inputs may come from another Ops, whose count is ahead.
	for _, in := range n.inputs {
		if in != nil {
			o.last = max(o.last, in.order)
		}
	}
	o.last++
	n.order = o.last
	defer func() {
		if n.history == nil { // the tape refused it by a panic
			n.Free()
		}
	}()
	n.history = o.tape.Hold(n)
	t.Attach(n.history)
}

// hooks are functions that are called in the order in which they were added.
// Hooks may add and remove others: whoever goes through the list keeps it as it
// was, since it only grows at its end, and removing makes a new one.
type hooks[F any] struct{ list []*hook[F] }

type hook[F any] struct{ f F }

func (h *hooks[F]) add(f F) Handle {
	added := &hook[F]{f}
	h.list = append(h.list, added)
	return Handle{func() {
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(other *hook[F]) bool { return other == added })
	}}
}

// Handle takes a hook away again.
type Handle struct{ remove func() }

// Remove ends the hook. A second Remove does nothing.
func (h Handle) Remove() { h.remove() }

// OnForward has f called with every result that is recorded from now on, and
// with the name of its operation. f owns nothing: it keeps a result by Retain.
func (o *Ops) OnForward(f func(op string, out *engine.Tensor)) Handle { return o.forward.add(f) }
