package autodiff

import (
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// record gives out, the result of op, a node. inputs are all operands that a
// gradient can reach; saves is what backward reads, nil where it does not need it.
func (o *Ops) record(op string, out *engine.Tensor, inputs, saves []*engine.Tensor, backward func(*pass)) *engine.Tensor {
	if o.finite {
		o.checkForward(op, out, inputs)
	}
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
func (o *Ops) plain(op string, out *engine.Tensor, inputs ...*engine.Tensor) *engine.Tensor {
	if o.finite {
		o.checkForward(op, out, inputs)
	}
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

// OnGrad has f called in every Backward with the whole gradient of a tracked
// tensor, before a leaf gathers it or an operation passes it on. What f returns, of
// the same shape, goes on in its place; nil leaves it. o computes without
// recording, unless the pass itself is to be differentiated. Temporaries of f and
// the gradient are released after it. OnGrad panics with an *engine.Error on a
// tensor that is not tracked, and on a nil f. The hook lives with the tensor's node.
func OnGrad(t *engine.Tensor, f func(o engine.Ops, grad *engine.Tensor) *engine.Tensor) Handle {
	node := mustNode("on grad", t)
	if f == nil {
		panic(&engine.Error{Op: "on grad", Reason: "the hook is nil"})
	}
	return node.hooks.add(f)
}
