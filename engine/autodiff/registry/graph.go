package registry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/engine/mem"
)

// graph is a set of nodes that is swept in one go: a connected component, or
// under the rules before components all there are.
type graph struct {
	first  *token // which the index lists it under; nil where there is no index
	nodes  map[*token]bool
	newest map[*token]bool // the nodes without children: where a sweep begins
	into   *graph          // that this one was merged into
}

func (r *Registry) newGraph(first *token) *graph {
	g := &graph{first: first, nodes: make(map[*token]bool), newest: make(map[*token]bool)}
	r.graphs[g] = true
	return g
}

// now is the graph, or the one that it was merged into.
func (g *graph) now() *graph {
	for g.into != nil {
		g = g.into
	}
	return g
}

// graphFor finds the graph that a new node belongs to: the one of its parents,
// which it may join to one.
func (r *Registry) graphFor(t *token) *graph {
	if r.options.Rules < RulesComponents {
		for g := range r.graphs {
			return g // the only one
		}
	}
	var g *graph
	for _, parent := range t.parents {
		switch {
		case parent.graph == nil || parent.graph == g:
		case g == nil:
			g = parent.graph
		case len(parent.graph.nodes) > len(g.nodes):
			r.merge(parent.graph, g)
			g = parent.graph
		default:
			r.merge(g, parent.graph)
		}
	}
	if g == nil {
		g = r.newGraph(t)
		r.index[t] = make(map[*token]*mem.Storage)
	}
	r.index[g.first][t] = r.alloc(EntryBytes())
	return g
}

// merge moves all that is in one graph to another.
func (r *Registry) merge(g, from *graph) {
	for t := range from.nodes {
		t.graph = g
	}
	maps.Copy(g.nodes, from.nodes)
	maps.Copy(g.newest, from.newest)
	maps.Copy(r.index[g.first], r.index[from.first])
	delete(r.index, from.first)
	delete(r.graphs, from)
	from.into = g
}

// remove forgets a node. What it saved is not released here.
func (r *Registry) remove(t *token, index bool) {
	g := t.graph
	delete(g.nodes, t)
	delete(g.newest, t)
	free(t.record)
	t.graph, t.parents, t.record = nil, nil, nil
	if r.options.Rules < RulesComponents {
		return
	}
	if index {
		members := r.index[g.first]
		free(members[t])
		delete(members, t)
		if len(members) == 0 {
			delete(r.index, g.first)
		}
	}
	if len(g.nodes) == 0 {
		delete(r.graphs, g)
	}
}

// remains reports whether gradients could still reach the node through a parent.
func (t *token) remains() bool { return t.graph != nil }

// sweep frees the nodes of a graph that no Backward can have a use for.
func (r *Registry) sweep(g *graph) {
	useful := g.useful()
	dead := make(map[*token]bool)
	newest := make(map[*token]bool)
	// From the newest nodes down, what is not useful goes; the first useful ones
	// are the newest that remain.
	seen := make(map[*token]bool)
	for list := slices.Collect(maps.Keys(g.newest)); len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		switch {
		case seen[t]:
		case useful[t]:
			newest[t] = true
		default:
			dead[t] = true
			for _, parent := range t.parents {
				if parent.remains() {
					list = append(list, parent)
				}
			}
		}
		seen[t] = true
	}
	g.newest = newest
	for t := range g.nodes {
		if !useful[t] && !t.referenced() && r.unreachable(t) {
			dead[t] = true
		}
	}
	r.bury(dead, true)
}

// unreachable reports whether the rules free an unused node that no newest one
// leads to.
func (r *Registry) unreachable(t *token) bool {
	switch {
	case r.options.Rules < RulesRoots:
		return false
	case r.options.Rules < RulesAbsentParents:
		return len(t.parents) == 0
	}
	return !slices.ContainsFunc(t.parents, (*token).remains)
}

// useful marks the nodes that a tensor refers to and gradients can go through,
// and all that lead to one.
func (g *graph) useful() map[*token]bool {
	// All that the newest nodes lead to, parents first.
	reached := make(map[*token]bool)
	var order []*token
	for list := slices.Collect(maps.Keys(g.newest)); len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if reached[t] {
			continue
		}
		reached[t] = true
		order = append(order, t)
		for _, parent := range t.parents {
			if parent.remains() {
				list = append(list, parent)
			}
		}
	}
	slices.SortFunc(order, func(a, b *token) int { return cmp.Compare(a.sequence, b.sequence) })
	// A node is available if all that it leads to is there.
	available := make(map[*token]bool)
	for _, t := range order {
		available[t] = !slices.ContainsFunc(t.parents, func(parent *token) bool { return !available[parent] })
	}
	useful := make(map[*token]bool)
	for _, t := range slices.Backward(order) {
		if available[t] && t.referenced() {
			useful[t] = true
		}
		if useful[t] {
			for _, parent := range t.parents {
				useful[parent] = true
			}
		}
	}
	return useful
}

// sweepUnused frees, of the graphs in which no tensor refers to any node, the
// nodes whose parents are gone: one layer of each graph.
func (r *Registry) sweepUnused() {
	dead := make(map[*token]bool)
	for g := range r.graphs {
		used := false
		for t := range g.nodes {
			used = used || t.referenced()
		}
		for t := range g.nodes {
			if !used && r.unreachable(t) {
				dead[t] = true
			}
		}
	}
	r.bury(dead, r.options.Rules >= RulesIndex)
}

// bury frees nodes, oldest first, so that equal runs free alike.
func (r *Registry) bury(dead map[*token]bool, index bool) {
	order := slices.SortedFunc(maps.Keys(dead), func(a, b *token) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, t := range order {
		if t.pending && t.Node != nil {
			t.Free()
		}
		t.pending = false
		r.remove(t, index)
	}
}
