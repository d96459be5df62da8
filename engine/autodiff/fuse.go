package autodiff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

var _ engine.Fuser = (*Ops)(nil)

// Fuse does a Fusion at once where the operations inside can, and records it as
// one operation; see engine.Fuser. All its operands are saved.
func (o *Ops) Fuse(f engine.Fusion, in ...*engine.Tensor) (out *engine.Tensor, kept []*engine.Tensor, ok bool) {
	eager, is := o.inner.(*engine.Eager)
	if !is {
		return nil, nil, false
	}
	out, kept, ok = eager.Fuse(f, in...)
	switch operands := len(in); {
	case !ok:
		return nil, nil, false
	case o.tracked(in...):
		o.record(f.Name(), out, in, slices.Concat(in, kept), func(p *pass) { p.fusion(eager, f, operands) })
	default:
		o.plain(f.Name(), out)
	}
	return out, kept, true
}

// fusion hands gradients to a Fusion's operands, which were saved first.
func (p *pass) fusion(eager *engine.Eager, f engine.Fusion, operands int) {
	in, kept := p.saved[:operands], p.saved[operands:]
	if p.create {
		p.unfold(f, in)
		return
	}
	wants := make([]bool, operands)
	for i := range wants {
		wants[i] = p.needs(i)
	}
	for i, g := range f.Backward(eager, p.grad, in, kept, wants) {
		p.to(i, func() *engine.Tensor { return g })
	}
}

// unfold composes a Fusion of primitives and goes through their nodes instead:
// its own Backward has no derivative, and theirs have.
func (p *pass) unfold(f engine.Fusion, in []*engine.Tensor) {
	before := p.decorator.last
	root := nodeOf(f.Compose(p.decorator, in...))
	nodes := []*Node{root}
	for at := 0; at < len(nodes); at++ {
		for _, n := range nodes[at].inputs {
			if n != nil && n.order > before && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return cmp.Compare(b.order, a.order) })

	node, grad, saved := p.node, p.grad, p.saved
	defer func() { p.node, p.grad, p.saved = node, grad, saved }()
	p.saved = nil
	p.pending[root] = pending{grad: p.share(grad), site: node.site}
	for _, n := range nodes {
		p.through(n)
	}
}
