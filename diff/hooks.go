package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// countHooks makes a leak of each module's hooks that become ever more, by rows that count items, unless another tells it: each runs
// at each step, however little it takes.
func (r *Result) countHooks(rows []Row) {
	if !r.Comparable {
		return
	}
	for i := range rows {
		f := r.ofHooks(&rows[i])
		if f != nil && !slices.ContainsFunc(r.Findings, func(g Finding) bool {
			return g.Verdict == Leak && g.Holder != nil && (g.Holder.Path == f.Holder.Path || partOf(g.Holder.Path, f.Holder.Path))
		}) {
			r.Findings = append(r.Findings, *f)
		}
	}
}

// ofHooks is a leak of a module's hooks; nil unless they become ever more.
func (r *Result) ofHooks(row *Row) *Finding {
	h, site := holder(r.Last, row), r.Series.Site(row)
	if h == nil || site == nil || !strings.HasSuffix(h.Path, "_hooks") {
		return nil
	}
	j, ok := r.becomesLonger(row, site)
	if !ok {
		return nil
	}
	r.doubt(&j)
	r.unsure(&j)
	if h.From != snapshot.NoStack {
		row.Frames = r.Last.Stacks.Frames(h.From)
	}
	f := r.finding(cluster{rows: []*Row{row}, j: j}, frame.Headline(row.Frames))
	f.Uncounted = true
	return &f
}
