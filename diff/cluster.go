package diff

import (
	"math"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// cluster is one leak: rows that grow in step and share a call, largest growth first.
type cluster struct {
	rows    []*Row
	j       judge.Judgement
	against *Comparison
	toBound float64         // blocks left until a declared bound; 0 for none
	bound   *snapshot.Bound // a declared bound that is not reached; nil for none
	settled bool            // above its declared bound, and it no longer grows
	graph   bool            // rows are of one autograd graph, and the first is its end
	alone   bool            // one site that was judged alone, and is no leak or possible leak
}

// group is an unfinished cluster below one call; call is zero if no call of the user's leads only to leaking rows.
type group struct {
	call call
	lead *member
	cluster
}

// member is a row that was judged, before it is assigned to a cluster.
type member struct {
	row *Row
	h   *series.History
	j   judge.Judgement
}

// clusters groups members of equal verdict that are one leak: what one retained graph, or one object with several
// parts, keeps alive. They are one if
//
//   - they grow in step: born in the same steps or, if births are unknown, along the same curve; and
//   - they share a call of the user's through which no healthy memory comes. A call with healthy memory, such as the
//     training step itself, does not show that two leaks are one; and
//   - no recorder found them in different lists.
//
// Several lines of one function compute what an autograd graph holds, so for graphs the function is enough. Members
// are in the order of their growth, and so are clusters and their rows.
func (r *Result) clusters(members []member, tree *callTree) []cluster {
	var groups []group
	byCall := make(map[call][]int)
next:
	for i := range members {
		m := &members[i]
		key, ok := tree.ownCall(m.row)
		if ok && !r.options.Without.Has(clustersGroup) {
			for _, at := range byCall[key] {
				g := &groups[at]
				if g.lead.j.Verdict == m.j.Verdict && inStep(g.lead, m) && !r.heldApart(g.lead.row, m.row) {
					g.rows = append(g.rows, m.row)
					continue next
				}
			}
			byCall[key] = append(byCall[key], len(groups))
		}
		groups = append(groups, group{key, m, cluster{rows: []*Row{m.row}, j: m.j}})
	}
	r.step(graphsGroup, func() { groups = r.joinGraphs(groups) })
	out := make([]cluster, len(groups))
	for i, g := range groups {
		out[i] = g.cluster
		if len(g.rows) > 1 {
			lineFirst(g.rows)
			out[i].j.Rate = r.rateOf(g.rows)
		}
	}
	return out
}

func inStep(a, b *member) bool {
	x, y := series.Distinct(a.row.Births.Steps), series.Distinct(b.row.Births.Steps)
	if len(x) > 0 && len(y) > 0 {
		return overlap(x, y) >= alikeBirths
	}
	if a.h == nil || b.h == nil {
		return false
	}
	n := len(a.h.X)
	if onLanguageHeap([]*Row{a.row, b.row}) { // a line is known only from the window that first saw it
		n = min(n, len(b.h.X))
	}
	p, q := a.h.Curve(n), b.h.Curve(n)
	if len(p) != len(q) || len(p) < 3 {
		return false
	}
	for i := range p {
		if math.Abs(p[i]-q[i]) > alikeCurves {
			return false
		}
	}
	return true
}

// overlap is the number of common values of two ascending lists, as a share of their union.
func overlap(a, b []int64) float64 {
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			common++
			i++
			j++
		}
	}
	return float64(common) / float64(len(a)+len(b)-common)
}

// heldApart reports whether a recorder found two rows in different lists or maps. What it found only in a field of
// the newest object may be anywhere.
func (r *Result) heldApart(a, b *Row) bool {
	x, y := r.keeper(a), r.keeper(b)
	return x != nil && y != nil && container(x) != container(y) && r.mayHold(x, a) && r.mayHold(y, b)
}

// rateOf is the slope of the sum of rows.
func (r *Result) rateOf(rows []*Row) Rate {
	var sum SiteSeries
	var growth Tally
	for _, row := range rows {
		growth = growth.Plus(row.Growth())
		if site := r.Series.Site(row); site != nil {
			sum.Add(site)
		}
	}
	if rate, ok := r.Series.Rate(&sum); ok {
		return rate
	}
	return series.PairRate(growth, r.First, r.Last)
}
