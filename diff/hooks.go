package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// countHooks reports growing lists of a module's hooks as leaks, from rows that count items, unless another leak has
// them: each hook runs at each step, however small it is.
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

// ofHooks returns a leak of a module's hooks; nil unless their number keeps growing.
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
