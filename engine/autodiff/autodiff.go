// Package autodiff makes any engine.Ops differentiable in reverse mode.
//
// The graph is owned by its outputs: a tensor holds its node, a node its inputs'
// nodes and what it saved, and nothing else refers to them. Dropping an output
// drops its chain; there is no registry to clean.
package autodiff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Ops decorates another Ops: results that depend on a tracked tensor record how
// they came about. Computing without a gradient is computing with Valid().
type Ops struct {
	inner engine.Ops
	made  uint64
	alive int
}

var _ engine.Ops = (*Ops)(nil)

// New returns the differentiable operations around inner.
func New(inner engine.Ops) *Ops { return &Ops{inner: inner} }

// Track makes leaves of tensors: Backward gathers a gradient in each. It panics
// with an *engine.Error on the result of a recorded operation; one that is tracked
// already stays as it is.
func (o *Ops) Track(ts ...*engine.Tensor) {
	for _, t := range ts {
		switch n := nodeOf(t); {
		case n == nil:
			t.Attach(o.node("leaf", nil, nil))
		case n.backward != nil:
			panic(&engine.Error{Op: "track", Shapes: []engine.Shape{t.Shape()}, Reason: "the tensor is the result of " + n.op + "; Detach it first"})
		}
	}
}

// Untrack makes plain tensors of leaves and releases their gradients.
func (o *Ops) Untrack(ts ...*engine.Tensor) {
	for _, t := range ts {
		if n := nodeOf(t); n != nil && n.backward == nil {
			t.Attach(nil)
		}
	}
}

// Tracked reports whether operations on the tensor are recorded.
func Tracked(t *engine.Tensor) bool { return nodeOf(t) != nil }

// Grad returns the gradient gathered in a leaf; nil where there is none. It
// belongs to the leaf, until ZeroGrad releases it.
func Grad(t *engine.Tensor) *engine.Tensor {
	if n := nodeOf(t); n != nil {
		return n.grad
	}
	return nil
}

// ZeroGrad releases the gradients of leaves. The memory is given back, not
// cleared, so that a gradient is live between its Backward and its use only.
func ZeroGrad(ts ...*engine.Tensor) {
	for _, t := range ts {
		if n := nodeOf(t); n != nil && n.grad != nil {
			n.grad.Release()
			n.grad = nil
		}
	}
}

// Nodes counts the graph's nodes that something still holds, leaves included.
func (o *Ops) Nodes() int { return o.alive }

// Node is one recorded operation, or a leaf. It counts its references, because
// what it saved is device memory.
type Node struct {
	ops    *Ops
	op     string
	order  uint64 // of recording; an output comes after its inputs
	refs   int
	inputs []*Node // nil for operands that are not tracked
	saved  []*engine.Tensor
	// backward is nil for a leaf. It captures shapes and numbers, never tensors:
	// those are saved, so that they are counted.
	backward func(*pass)
	site     mem.SiteID // where the operation was called
	spent    bool
	grad     *engine.Tensor // of a leaf
}

func (o *Ops) node(op string, inputs []*Node, backward func(*pass)) *Node {
	o.made++
	o.alive++
	return &Node{ops: o, op: op, order: o.made, refs: 1, inputs: inputs, backward: backward}
}

// nodeOf returns the node of a tensor; nil where it has none.
func nodeOf(t *engine.Tensor) *Node {
	n, _ := t.History().(*Node)
	return n
}

// Retain adds a reference.
func (n *Node) Retain() { n.refs++ }

// Release takes a reference back. The last one releases what the node saved, its
// gradient and its inputs, and so on down the chain: by a list, since a chain may
// be longer than a call stack should be.
func (n *Node) Release() {
	for list := []*Node{n}; len(list) > 0; {
		n, list = list[len(list)-1], list[:len(list)-1]
		if n.refs--; n.refs > 0 {
			continue
		}
		if n.grad != nil {
			n.grad.Release()
			n.grad = nil
		}
		for _, in := range n.clear() {
			if in != nil {
				list = append(list, in)
			}
		}
		n.ops.alive--
	}
}

// clear releases what the node saved, and returns its inputs, which the caller
// now holds for it.
func (n *Node) clear() (inputs []*Node) {
	for _, t := range n.saved {
		if t != nil {
			t.Release()
		}
	}
	inputs = n.inputs
	n.saved, n.inputs = nil, nil
	return inputs
}

// tracked reports whether any operand has a node: only then is there something
// to record.
func tracked(ts ...*engine.Tensor) bool {
	return slices.ContainsFunc(ts, Tracked)
}

// record gives out, the result of op, a node. inputs are all operands that a
// gradient can reach; saved is what backward reads, nil where it does not need it.
func (o *Ops) record(op string, out *engine.Tensor, inputs, saved []*engine.Tensor, backward func(*pass)) *engine.Tensor {
	edges := make([]*Node, len(inputs))
	for i, t := range inputs {
		if n := nodeOf(t); n != nil {
			n.Retain()
			edges[i] = n
		}
	}
	n := o.node(op, edges, backward)
	n.site = o.inner.Device().Site()
	n.saved = make([]*engine.Tensor, len(saved))
	for i, t := range saved {
		if t != nil {
			n.saved[i] = t.Share(snapshot.OwnedByTape)
		}
	}
	out.Attach(n)
	return out
}

// Backward gathers d loss / d leaf in every leaf that loss depends on, adding to
// what is there. It releases the graph node by node as it goes, so it runs once a
// graph; a second time is an error. loss has one element.
func (o *Ops) Backward(loss *engine.Tensor) error {
	root := nodeOf(loss)
	if root == nil {
		return fmt.Errorf("backward: the loss depends on no tracked tensor; Track the parameters, and compute with the autodiff operations, not with Valid()")
	}
	if loss.Shape().Elements() != 1 {
		return fmt.Errorf("backward: the loss has the shape %v; Sum or Mean makes one number of it", loss.Shape())
	}
	order, err := o.reachable(root)
	if err != nil {
		return err
	}
	for _, n := range order { // a node is released while later ones are still to come
		n.Retain()
	}
	p := &pass{Ops: o.inner, pending: make(map[*Node]pending, len(order)), held: order}
	defer p.abandon(o.inner.Device().SetParent(root.site))
	one := o.inner.Full(1, loss.Shape().Slice()...).Own(snapshot.OwnedByGrad)
	p.pending[root] = pending{grad: one, sole: true, site: root.site}
	for _, n := range order {
		p.through(n)
		p.held = p.held[1:]
		n.Release()
	}
	return nil
}

// reachable lists the nodes that lead to root, root first and inputs after all
// of their outputs.
func (o *Ops) reachable(root *Node) ([]*Node, error) {
	seen := map[*Node]bool{root: true}
	order := []*Node{root}
	for at := 0; at < len(order); at++ {
		n := order[at]
		if n.spent {
			return nil, fmt.Errorf("backward: %s was gone through before, and what it saved was released; compute the loss again, or Detach what comes from an earlier step", n.op)
		}
		for _, in := range n.inputs {
			if in != nil && !seen[in] {
				seen[in] = true
				order = append(order, in)
			}
		}
	}
	slices.SortFunc(order, func(a, b *Node) int { return int(b.order) - int(a.order) })
	return order, nil
}

// pass is one Backward under way, and what a node's backward function sees of
// it: the inner operations, the gradient of its output, what it saved.
type pass struct {
	engine.Ops
	grad    *engine.Tensor
	saved   []*engine.Tensor
	node    *Node
	given   []*mem.Storage // blocks of gradients that this node has passed on
	pending map[*Node]pending
	held    []*Node // nodes that are still to come, retained
}

// pending is a gradient on its way to a node.
type pending struct {
	grad *engine.Tensor
	sole bool       // no other tensor shares its block
	site mem.SiteID // of the operation that it came through last
}

// through takes one node's gradient to its inputs, or into a leaf.
func (p *pass) through(n *Node) {
	in, ok := p.pending[n]
	if !ok {
		return // no gradient comes this way
	}
	p.Device().SetParent(in.site)
	if n.backward == nil {
		p.gather(n, in)
		return
	}
	p.Device().SetParent(n.site)
	s := p.Begin()
	defer s.End()
	p.node, p.grad, p.saved, p.given = n, in.grad, n.saved, p.given[:0]
	n.backward(p)
	delete(p.pending, n)
	in.grad.Release()
	n.spent = true
	for _, input := range n.clear() {
		if input != nil {
			input.Release()
		}
	}
}

// needs reports whether input i wants a gradient.
func (p *pass) needs(i int) bool { return p.node.inputs[i] != nil }

// to adds a gradient to input i; make is called only if it wants one.
func (p *pass) to(i int, make func() *engine.Tensor) {
	if !p.needs(i) {
		return
	}
	input, g := p.node.inputs[i], make()
	next := pending{site: p.node.site}
	if before, ok := p.pending[input]; ok {
		next.grad, next.sole = p.Add(before.grad, g).Own(snapshot.OwnedByGrad), true
		before.grad.Release()
	} else if next.sole = p.fresh(g); next.sole {
		next.grad = g.Own(snapshot.OwnedByGrad)
	} else {
		next.grad = g.Share(snapshot.OwnedByGrad)
	}
	p.given = append(p.given, g.Storage())
	p.pending[input] = next
}

// fresh reports whether a gradient will be alone on its block, and fill it, once
// this node's temporaries are gone.
func (p *pass) fresh(g *engine.Tensor) bool {
	shares := func(t *engine.Tensor) bool { return t != nil && t.Storage() == g.Storage() }
	return !shares(p.grad) && !slices.ContainsFunc(p.saved, shares) && !slices.Contains(p.given, g.Storage()) &&
		g.View().Contiguous() && g.Storage().Requested() == int64(g.Shape().Elements())*engine.ElementSize
}

// gather adds a gradient to a leaf's. The leaf gets a block of its own: one that
// is shared, or a view of a larger one, would live as long as the gradient.
func (p *pass) gather(n *Node, in pending) {
	switch {
	case n.grad != nil:
		sum := p.Add(n.grad, in.grad).Own(snapshot.OwnedByGrad)
		n.grad.Release()
		n.grad = sum
	case in.sole:
		n.grad = in.grad
		delete(p.pending, n)
		return
	default:
		n.grad = p.Copy(in.grad).Own(snapshot.OwnedByGrad)
	}
	delete(p.pending, n)
	in.grad.Release()
}

// abandon leaves nothing behind: the gradients and nodes of a pass that a panic
// ended, and the parent site as it was.
func (p *pass) abandon(parent mem.SiteID) {
	p.Device().SetParent(parent)
	for _, in := range p.pending {
		in.grad.Release()
	}
	for _, n := range p.held {
		n.Release()
	}
}
