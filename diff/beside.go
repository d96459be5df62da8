package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// holdBeside finds a holder for leaking objects without one: a list, dictionary or set that holds other objects of
// the same call and grows in proportion. One call to a library allocates many objects, and a search reaches only
// some: of matplotlib's lines it reaches the caches of the newest, and a few lines in their axes.
func (r *Result) holdBeside() {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || !f.Unheld() || f.Headline < 0 || !onLanguageHeap(f.Rows) {
			continue
		}
		held := r.heldBytes(f.Rows)
		for k := range r.Rows {
			row := &r.Rows[k]
			h := r.keeper(row)
			if h == nil || h.Items == 0 || h.Bound > 0 || !slices.Contains([]string{"list", "dict", "set", "deque"}, h.Kind) || row.On() != f.Rows[0].On() {
				continue
			}
			if f.Unheld() || len(h.Path) < len(f.Holder.Path) { // the shortest path is nearest to a name in the program
				if comesThrough(row, f.Rows[0].Frames[f.Headline:]) && r.longerWith(h, held) {
					f.Holder = h
				}
			}
		}
	}
}

// heldBytes is the total of rows at each mark.
func (r *Result) heldBytes(rows []*Row) []float64 {
	out := make([]float64, len(r.Series.Marks))
	for _, row := range rows {
		if site := r.Series.Site(row); site != nil {
			for i, n := range site.Bytes {
				out[i] += float64(n)
			}
		}
	}
	return out
}

// comesThrough reports whether a row's stack has these outermost frames, as far as the recorder stored them.
func comesThrough(row *Row, calls []snapshot.Frame) bool {
	n := commonSuffix(row.Frames, calls)
	return n > 0 && n == min(len(calls), len(row.Frames))
}
