package diff

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// gained is by how much a container's length must have changed, as a share of its items, to follow its device's
// memory.
const gained = 0.25

// followTotals calls the largest growth on a device a leak if nothing else is decided there, the device's total grows
// steadily, and the container that holds the blocks grows in proportion. A recorder that watches one step in many
// knows the device's total exactly, but may assign blocks to the wrong line: with a new model in each fold, no single
// line rises steadily.
func (r *Result) followTotals(grown []cluster) {
	seen := make(map[int]bool) // devices
	for i := range grown {
		c := &grown[i]
		site := r.Series.Site(c.rows[0])
		if site == nil || seen[site.Device] {
			continue
		}
		if c.j.Verdict == Leak {
			seen[site.Device] = true
			continue
		}
		h := r.keeper(c.rows[0])
		if c.j.Verdict != Inconclusive || !c.rows[0].Births.Sampled() || h == nil || h.Bound > 0 || !slices.Contains([]string{"list", "dict", "set", "deque"}, h.Kind) {
			continue
		}
		from, total := r.Series.WarmUp(), r.onDevice(site.Device)
		if series.Tapers(r.Series.Axis.X[from:], total[from:]) {
			continue
		}
		x, y := risingFloors(r.Series.Axis.X[from:], total[from:])
		if y == nil || !steadily(r.options.Without, x, y) || !r.longerWith(h, total) {
			continue
		}
		seen[site.Device] = true
		c.j.Reasons = nil
		c.j.Call(Leak, Weak, "all memory of its device grows steadily, and the %s %s grows in proportion", h.Kind, h.Path)
	}
}

// longerWith reports whether a container's length has changed by at least a quarter, in proportion to bytes, given
// for each mark.
func (r *Result) longerWith(h *snapshot.Holder, bytes []float64) bool {
	var items, held []float64
	for _, seen := range r.indexed().seen[h.Path] {
		i := slices.IndexFunc(r.Series.Marks, at(seen.in.Mark))
		if i < 0 || seen.holder.Counted > 0 || seen.holder.Kind != h.Kind {
			continue
		}
		if n := len(held); n == 0 || held[n-1] != bytes[i] || items[n-1] != float64(seen.holder.Items) {
			items, held = append(items, float64(seen.holder.Items)), append(held, bytes[i])
		}
	}
	last := len(items) - 1
	if last+1 < fewMarks || math.Abs(items[last]-items[0]) < gained*max(items[last], items[0]) {
		return false
	}
	for i := range items {
		if math.Abs((items[i]-items[0])/(items[last]-items[0])-(held[i]-held[0])/(held[last]-held[0])) > alikeCurves {
			return false
		}
	}
	return (items[last]-items[0])*(held[last]-held[0]) > 0
}
