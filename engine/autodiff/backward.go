package autodiff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// BackwardOptions say what Backward leaves behind.
type BackwardOptions struct {
	// KeepGraph leaves the graph, and what it saved, for another Backward.
	KeepGraph bool
	// CreateGraph records the pass, so that gradients can be differentiated in
	// turn; it implies KeepGraph. A leaf and its gradient then hold each other:
	// ZeroGrad before the leaf is released, or neither is ever freed.
	CreateGraph bool
}

// Backward gathers d loss / d leaf in every leaf that loss depends on, adding to
// what is there. It releases the graph node by node as it goes, so it runs once a
// graph; a second time is an error. loss has one element. An error leaves
// everything as it was; a panic of an operation leaves no temporaries.
func (o *Ops) Backward(loss *engine.Tensor) error {
	return o.BackwardWith(loss, BackwardOptions{})
}

// BackwardWith is Backward with options.
func (o *Ops) BackwardWith(loss *engine.Tensor, options BackwardOptions) error {
	switch {
	case o.Checkpointing():
		return errors.New("backward: a Checkpoint is under way, whose function runs again in backward; run Backward after it")
	case loss == nil:
		return errors.New("backward: the loss is nil")
	case loss.Released():
		return errors.New("backward: the loss has been released, and its graph with it; run Backward in the scope that computed it, or Keep the loss")
	}
	root := nodeOf(loss)
	if root == nil {
		return fmt.Errorf("backward: the loss depends on no tracked tensor; Track the parameters, and compute with the autodiff operations, not with Valid() or in NoGrad")
	}
	if loss.Shape().Elements() != 1 {
		return fmt.Errorf("backward: the loss has the shape %v; Sum or Mean makes one number of it", loss.Shape())
	}
	keep := options.KeepGraph || options.CreateGraph
	nodes, err := o.tape.Reach(root, keep)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.overwritten(o.inner.Device()); err != nil {
			return err
		}
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int { return cmp.Compare(b.order, a.order) })
	o.tape.Take(nodes)
	p := &pass{Ops: o.inner, decorator: o, pending: make(map[*Node]pending, len(nodes)), left: nodes}
	if options.CreateGraph {
		p.Ops, p.create = o, true
	}
	defer p.end(nodes, o.inner.Device().SetParent(root.site), o.quiet)
	o.quiet++ // Functions may compute with o
	if p.create {
		o.quiet = 0
	}
	one := o.inner.Full(1, loss.Shape().Slice()...).Own(snapshot.OwnedByGrad)
	p.pending[root] = pending{grad: one, sole: true, site: root.site}
	for _, n := range nodes {
		p.through(n)
		p.left = p.left[1:]
		o.tape.Leave(n, !keep)
	}
	return nil
}

// pass is one Backward under way, and what a node's backward function sees of
// it: operations, the gradient of its output, what it saved. The operations are
// the inner ones, or where the pass is to be differentiated the decorator's own.
type pass struct {
	engine.Ops
	grad  *engine.Tensor
	saved []*engine.Tensor

	decorator *Ops
	create    bool
	node      *Node
	given     []*mem.Storage // blocks of gradients that this node has passed on
	pending   map[*Node]pending
	left      []*Node // nodes that are still to come
	replayed  []*segment
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
	engine.Within(p.Ops, func() { p.visit(n, in) })
}

// visit is through in the scope of the node's temporaries.
func (p *pass) visit(n *Node, in pending) {
	if n.Leaf() {
		p.gather(n, in.grad, in.sole)
		if in.grad != n.grad {
			in.grad.Release()
		}
		delete(p.pending, n)
		return
	}
	p.Device().SetParent(n.site)
	p.unpack(n)
	p.node, p.grad, p.given = n, in.grad, p.given[:0]
	n.backward(p)
	delete(p.pending, n)
	in.grad.Release()
	p.pack()
}

// share is a handle on a gradient for the pass. It has a history where the pass
// is to be differentiated.
func (p *pass) share(g *engine.Tensor) *engine.Tensor {
	s := g.Share(snapshot.OwnedByGrad)
	if h := g.History(); p.create && h != nil {
		h.Retain()
		s.Attach(h)
	}
	return s
}

// unpack puts what a node saved before its backward function.
func (p *pass) unpack(n *Node) {
	p.saved = p.saved[:0]
	if n.segment != nil && !n.segment.ready {
		p.replayed = append(p.replayed, n.segment)
		n.segment.run(p.decorator)
	}
	for i, s := range n.saved {
		t := s.tensor
		if n.segment != nil {
			t = n.segment.slot(n.slot + i)
		}
		if t != nil && p.create {
			t = t.Share(snapshot.OwnedByTape)
			if h := n.historyOf(s.source); h != nil {
				h.Retain()
				t.Attach(h)
			}
		}
		p.saved = append(p.saved, t)
	}
}

// historyOf is what makes a saved tensor differentiable.
func (n *Node) historyOf(source int) engine.History {
	switch {
	case source == fromOutput:
		return n.history
	case source >= 0 && n.inputs[source] != nil:
		return n.inputs[source].history
	}
	return nil
}

// pack releases the handles that unpack made.
func (p *pass) pack() {
	for i, t := range p.saved {
		p.saved[i] = nil
		if t != nil && p.create {
			t.Release()
		}
	}
	p.saved = p.saved[:0]
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
		next.grad = p.share(g)
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

// gather adds a gradient to a node's own; sole says that it may become it. The
// node gets a block of its own: one that is shared, or a view of a larger one,
// would live as long as the gradient.
func (p *pass) gather(n *Node, g *engine.Tensor, sole bool) {
	switch {
	case n.grad == nil && sole:
		n.grad = g
	case n.grad == nil:
		n.grad = p.Copy(g).Own(snapshot.OwnedByGrad)
	case p.create || Tracked(n.grad): // in place would cut it off from its history
		sum := p.Add(n.grad, g).Own(snapshot.OwnedByGrad)
		n.grad.Release()
		n.grad = sum
	default:
		p.Assign(n.grad, p.Add(n.grad, g))
	}
}

// end leaves nothing behind, whichever way the pass ended: no gradients or nodes
// on their way, and the parent site and NoGrad as they were.
func (p *pass) end(nodes []*Node, parent mem.SiteID, quiet int) {
	p.Device().SetParent(parent)
	p.decorator.quiet = quiet
	p.pack()
	for _, in := range p.pending {
		if !in.grad.Released() { // by a Function, whose misuse has its panic under way
			in.grad.Release()
		}
	}
	for _, g := range p.replayed {
		g.forget()
	}
	for _, n := range p.left {
		p.decorator.tape.Leave(n, false)
	}
	p.decorator.tape.Done(nodes)
}
