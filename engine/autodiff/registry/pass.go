package registry

import (
	"fmt"

	"github.com/memdiag/memdiag/engine/autodiff"
)

// Reach lists what leads to root; see autodiff.Tape.
func (r *Registry) Reach(root *autodiff.Node, keep bool) ([]*autodiff.Node, error) {
	if keep {
		return nil, fmt.Errorf("backward: a registry gives a graph up in one pass; to keep it, use autodiff.New")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	top, ok := root.History().(*token)
	if !ok {
		return nil, fmt.Errorf("backward: the loss is tracked by another tape; use the Ops that computed it")
	}
	seen := map[*token]bool{top: true}
	list := []*token{top}
	nodes := make([]*autodiff.Node, 0, 1)
	for at := 0; at < len(list); at++ {
		t := list[at]
		// A leaf gets its gradient in every pass; anything else was gone through in
		// another, or swept with it.
		if !t.pending && !t.Leaf() {
			return nil, autodiff.SpentError(t.Node)
		}
		nodes = append(nodes, t.Node)
		for _, parent := range t.parents {
			if !seen[parent] {
				seen[parent] = true
				list = append(list, parent)
			}
		}
	}
	return nodes, nil
}

// Take makes the nodes the pass's own: no sweep frees what they saved. A node
// that no tensor refers to is forgotten at once.
func (r *Registry) Take(nodes []*autodiff.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range nodes {
		t := n.History().(*token)
		if i == 0 {
			r.passes[n] = t.graph
		}
		if !t.pending {
			continue
		}
		t.pending = false
		if !t.referenced() {
			r.remove(t, true)
		}
	}
}

// Leave frees what a node saved.
func (r *Registry) Leave(n *autodiff.Node, _ bool) {
	if !n.Leaf() {
		n.Free()
	}
	if !n.History().(*token).referenced() {
		n.DropGrad()
	}
}

// Done sweeps.
func (r *Registry) Done(nodes []*autodiff.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.passes[nodes[0]]; g != nil {
		r.sweep(g.now())
	}
	delete(r.passes, nodes[0])
	if r.options.Rules >= RulesAllGraphs {
		r.sweepUnused()
	}
}

// Sweep does what a Backward does at its end, for every graph. Burn has no such
// call: memory that forward passes alone leave behind stays until a Backward
// (#4339, #4970).
func (r *Registry) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var graphs []*graph
	for g := range r.graphs {
		graphs = append(graphs, g)
	}
	for _, g := range graphs {
		r.sweep(g)
	}
}
