package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
)

// unassigned takes back that blocks without a stack leak while their device holds no more for it. A recorder that watches
// some steps only has what it did not watch there: where the lines that it knows let go of as much, it is theirs.
func (r *Result) unassigned(row *Row, j *judge.Judgement) {
	site := r.Series.Site(row)
	if j.Verdict != Leak || len(row.Frames) > 0 || site == nil {
		return
	}
	total := make([]float64, len(site.Bytes))
	for i := range r.Series.Sites {
		if other := &r.Series.Sites[i]; other.Device == site.Device {
			for k, n := range other.Bytes {
				total[k] += float64(n)
			}
		}
	}
	least := slices.Min(site.Bytes)
	from := len(site.Bytes) - 1 // where it was least for the last time
	for site.Bytes[from] != least {
		from--
	}
	last := len(total) - 1
	if 2*(total[last]-total[from]) < float64(site.Bytes[last]-least) {
		j.Reasons = nil
		j.Call(Inconclusive, Weak, "it rises, but all of its device holds no more than at %s: blocks that nobody watched may have replaced those of known lines; run longer to decide", r.Series.Axis.Unit.Moment(r.Series.Axis.X[from]))
	}
}
