package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// churned withdraws the leak of a site without known births if most of the blocks that it held half-way have been
// freed: other blocks replaced them, as in a window of recent steps that a schedule widens.
func (r *Result) churned(row *Row, j *judge.Judgement) {
	all := r.run.Snapshots
	if j.Verdict != Leak || j.Shape == BytesOnly || j.Shape == Doubling || len(row.Births.Steps)+len(row.Births.Times) > 0 || len(all) < 3 {
		return
	}
	if r.half == nil {
		half := all[len(all)/2]
		r.half = make(map[series.SiteKey]Row)
		for _, row := range series.Pair(half, r.Last) {
			r.half[row.Key] = row
		}
		for _, s := range []*snapshot.Snapshot{half, r.Last} {
			for _, site := range s.Sites() {
				if slices.ContainsFunc(site.Rows, func(row int32) bool { return s.Blocks.CountOf(int(row)) > 1 }) {
					delete(r.half, series.KeyOf(s, site.SiteKey)) // these rows are sums of blocks, without addresses
				}
			}
		}
	}
	if half := r.half[row.Key]; half.Before.Blocks >= leastChurned && 2*half.Died.Blocks > half.Before.Blocks {
		j.Reasons = nil
		j.Call(Inconclusive, Weak, "it rises, but of its %d blocks at half-way %d have been freed, as with a sequence or window that a schedule widens; run longer to decide", half.Before.Blocks, half.Died.Blocks)
	}
}
