package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// suspected reports whether a site leaks, or its births may be those of a leak.
func (o *SiteAges) suspected() bool {
	return o.Verdict == Leak || o.Verdict == Inconclusive && (o.Pattern == InWindow || o.Pattern == Throughout)
}

// find joins the suspected sites to findings as Analyze does, compared with an empty snapshot: what one graph or one
// object retains is one finding, with the line that a comparison would name.
func (a *Ages) find(s *snapshot.Snapshot) {
	if !slices.ContainsFunc(a.Sites, func(site SiteAges) bool { return site.suspected() }) {
		return
	}
	nothing := &snapshot.Snapshot{Stacks: snapshot.NewStacks(), Rank: s.Rank, Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}}
	if a.Unit == "step" {
		nothing.Mark.Step = a.From
	}
	r := &Result{
		Rule: ByTrend, First: nothing, Last: s, Rows: series.Pair(nothing, s), Series: &Series{Axis: series.PairAxis(nothing, s)}, Comparable: true,
		run: &snapshot.Run{Snapshots: []*snapshot.Snapshot{s}}, options: DefaultOptions(),
	}
	rows := make(map[series.SiteKey]*Row, len(r.Rows))
	for i := range r.Rows {
		rows[r.Rows[i].Key] = &r.Rows[i]
	}
	var open []member
	var suspects, healthy []*Row
	for i := range a.Sites {
		site := &a.Sites[i]
		row := rows[series.KeyOf(s, site.Site.SiteKey)]
		if !site.suspected() {
			healthy = append(healthy, row)
			continue
		}
		suspects = append(suspects, row)
		open = append(open, member{row: row, j: judge.Judgement{Verdict: site.Verdict, Evidence: site.Evidence, Reasons: site.Reasons, Rate: site.Rate}})
	}
	tree := newCallTree(suspects, healthy)
	for _, c := range r.clusters(open, tree) {
		if a.Unit != "step" {
			c.j.Rate = Rate{}
		}
		a.Findings = append(a.Findings, r.finding(c, r.headOf(&c, tree)))
	}
	slices.SortStableFunc(a.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(order(x.Verdict), order(y.Verdict)), cmp.Compare(y.After().Bytes, x.After().Bytes))
	})
	r.explain(a.Findings)
}
