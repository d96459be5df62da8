package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// sizeGraphs joins leaks of autograd's nodes with leaks of tensors that have the same holder: they are in one graph.
// The size of a node is unknown, so the growth of the process that no stack explains is added to a leak of nodes, or
// of tensors with nodes behind them; of several, to the one with most nodes.
func (r *Result) sizeGraphs() {
	var nodes, others []Finding
	for _, f := range r.Findings {
		if f.Verdict == Leak && f.ofNodes() {
			nodes = append(nodes, f)
		} else {
			others = append(others, f)
		}
	}
	e := r.Unexplained()
	if len(nodes) > 0 && e == nil {
		_, beyond := r.Series.Unrecorded()
		if x, rest := r.floorsBeyond(beyond); rest != nil { // even a small growth counts: a leak is known
			e = r.ofProcess(x, rest)
		}
	}
	var largest *Finding
	for i := range nodes { // a leak with a line comes first; a number that a graph saves, as of 0.9*ema, has none
		f := &nodes[i]
		others = slices.DeleteFunc(others, func(g Finding) bool {
			behind := f.Headline >= 0 && len(g.Rows[0].Frames) == 0 && g.keeps(f.Holder) && g.Holder.Path == f.Holder.Path
			if behind {
				f.Behind = append(f.Behind, g.Rows...)
			}
			return behind
		})
	}
	nodes = slices.DeleteFunc(nodes, func(f Finding) bool {
		at := slices.IndexFunc(others, func(g Finding) bool { return g.keeps(f.Holder) })
		if at >= 0 {
			others[at].Behind = append(others[at].Behind, f.Rows...)
		}
		return at >= 0
	})
	for i := range nodes {
		if f := &nodes[i]; largest == nil || f.Growth().Blocks > largest.Growth().Blocks {
			largest = f
		}
	}
	for i := range others {
		if f := &others[i]; largest == nil && e != nil && f.keeps(e.Graph) {
			largest = f
		}
	}
	if largest != nil && e != nil && e.Rate.Unit == largest.Rate.Unit {
		grown := *e
		largest.Nodes = &grown
		r.putBehind(largest, nil, e.Rate)
		r.Reserves = slices.DeleteFunc(r.Reserves, func(e Reserve) bool { return e.Meter == cause.Host && e.Processes == nil })
	}
	r.Findings = slices.Concat(others, nodes)
}

// ofNodes reports whether a finding consists of autograd's nodes.
func (f *Finding) ofNodes() bool { return f.Rows[0].Device.Kind == snapshot.Graph }

// nodesBehind reports whether a finding's tensors are known to hold autograd nodes, by the number of nodes or by the
// process's growth.
func (f *Finding) nodesBehind() bool {
	return !f.ofNodes() && (f.Nodes != nil && f.keeps(f.Nodes.Graph) || slices.ContainsFunc(f.Behind, func(row *Row) bool { return row.Device.Kind == snapshot.Graph }))
}

// keeps reports whether a finding is a leak held by h, the holder of a graph's nodes, or by a graph.
func (f *Finding) keeps(h *snapshot.Holder) bool {
	return f.Verdict == Leak && h != nil && f.Holder != nil && (f.Holder.Path == h.Path || f.Holder.Kind == "graph")
}

// sum is the slope of the sum of two quantities, with the widest interval.
func sum(a, b trend.Slope) trend.Slope {
	return trend.Slope{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High, N: min(a.N, b.N)}
}
