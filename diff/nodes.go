package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// sizeGraphs makes one leak of autograd's nodes and of tensors that have the same holder: they lie in one graph. A leak
// of nodes, or of tensors with nodes behind them, is given the growth of the process that no stack explains, since
// nobody knows what a node takes; of several the one with most nodes is.
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
		if x, rest := r.floorsBeyond(beyond); rest != nil { // however little it is beside the process: something is known to leak
			e = r.ofProcess(x, rest)
		}
	}
	var largest *Finding
	for i := range nodes { // what has a line leads: a number that a graph saves, as of 0.9*ema, has none
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

// ofNodes reports whether what grew are nodes of autograd's.
func (f *Finding) ofNodes() bool { return f.Rows[0].Device.Kind == snapshot.Graph }

// nodesBehind reports whether autograd's nodes are known to hang on a finding's tensors, by their number or by what they take.
func (f *Finding) nodesBehind() bool {
	return !f.ofNodes() && (f.Nodes != nil && f.keeps(f.Nodes.Graph) || slices.ContainsFunc(f.Behind, func(row *Row) bool { return row.Device.Kind == snapshot.Graph }))
}

// keeps reports whether a finding is a leak of tensors that have the holder of a graph's nodes, or hang on a graph.
func (f *Finding) keeps(h *snapshot.Holder) bool {
	return f.Verdict == Leak && h != nil && f.Holder != nil && (f.Holder.Path == h.Path || f.Holder.Kind == "graph")
}

// sum is the slope of two quantities together, with an interval that is no narrower than theirs allow.
func sum(a, b trend.Slope) trend.Slope {
	return trend.Slope{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High, N: min(a.N, b.N)}
}
