package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// levelShare is how much the memory of a device may vary, as a share of a site's growth, to count as level; sameShare
// is the same for constant memory.
const levelShare, sameShare = 0.1, 0.01

// onDevice is the total of all sites of a device at each mark.
func (r *Result) onDevice(device int) []float64 {
	if r.totals == nil {
		r.totals = make([][]float64, len(r.Series.Devices))
		for i := range r.totals {
			r.totals[i] = make([]float64, len(r.Series.Marks))
		}
		for i := range r.Series.Sites {
			site := &r.Series.Sites[i]
			for k, n := range site.Bytes {
				r.totals[site.Device][k] += float64(n)
			}
		}
	}
	return r.totals[device]
}

// unassigned withdraws a leak, or a possible one, if the total of its device did not grow with it.
func (r *Result) unassigned(row *Row, j *judge.Judgement) {
	site := r.Series.Site(row)
	if site == nil || j.Verdict != Leak && j.Verdict != Inconclusive {
		return
	}
	total := r.onDevice(site.Device)
	last := len(total) - 1
	if len(row.Frames) > 0 {
		from := r.Series.WarmUp()
		grown, varies := site.Bytes[last]-site.Bytes[from], slices.Max(total[from:])-slices.Min(total[from:])
		gathers, _ := r.gathered(row)
		level := grown > 0 && len(total)-from >= series.Testable && !gathers
		switch {
		case level && varies <= sameShare*float64(grown):
			j.Reasons = nil
			j.Call(Bounded, Strong, "it rises, but its device's total is constant: its blocks replace blocks of other lines")
		case j.Verdict != Leak:
		case r.renewed(row):
			j.Reasons = nil
			j.Call(Inconclusive, Weak, "it rises, but its holder has one item per block and does not grow: its blocks may replace blocks of other lines; run longer to decide")
		case level && varies <= levelShare*float64(grown):
			j.Reasons = nil
			j.Call(Inconclusive, Weak, "it rises, but its device's total was constant: its blocks may replace blocks of other lines; run longer to decide")
		}
		return
	}
	if j.Verdict != Leak {
		return
	}
	// A recorder that watches some steps lists blocks of unwatched steps here. If known lines freed as much, the
	// blocks are theirs.
	least := slices.Min(site.Bytes)
	from := last // the last mark with the least
	for site.Bytes[from] != least {
		from--
	}
	if 2*(total[last]-total[from]) < float64(site.Bytes[last]-least) {
		j.Reasons = nil
		j.Call(Inconclusive, Weak, "it rises, but its device's total is no higher than at %s: blocks of unrecorded steps may have replaced blocks of known lines; run longer to decide", r.Series.Axis.Unit.Moment(r.Series.Axis.X[from]))
	}
}

// renewed reports whether one list or dictionary with at least one item for each of the row's blocks holds them, and
// has the same length in all of at least three snapshots: it frees an item for each new one.
func (r *Result) renewed(row *Row) bool {
	h, times := holder(r.Last, row), 0
	if h == nil || !slices.Contains([]string{"list", "dict"}, h.Kind) || int64(h.Items) < row.After.Blocks {
		return false
	}
	for _, s := range r.run.Snapshots {
		if i := slices.IndexFunc(s.Holders, func(g snapshot.Holder) bool { return g.Path == h.Path && g.Kind == h.Kind }); i >= 0 {
			if s.Holders[i].Items != h.Items {
				return false
			}
			times++
		}
	}
	return times >= 3
}

// isOn reports whether a member's site is on a device.
func (r *Result) isOn(m member, device int) bool {
	site := r.Series.Site(m.row)
	return site != nil && site.Device == device
}

// growsSettled reports whether a device grows steadily after warm-up, although none of its sites may leak by itself.
func (r *Result) growsSettled(device int, open []member) bool {
	from, total := r.Series.WarmUp(), r.onDevice(device)
	if slices.ContainsFunc(open, func(m member) bool { return r.isOn(m, device) }) || len(total)-from < series.Testable {
		return false
	}
	x, y := risingFloors(r.Series.Axis.X[from:], total[from:])
	return y != nil && steadily(r.options.Without, x, y)
}

// jointly makes the largest settled site of a device inconclusive if no site of the device may leak, but all of them
// together grow steadily: one line may have blocks that another allocated, or freed in an unwatched step.
func (r *Result) jointly(open, settled []member) (stillOpen, stillSettled []member) {
	for device := range r.Series.Devices {
		if !r.growsSettled(device, open) {
			continue
		}
		most := -1
		for i, m := range settled {
			if r.isOn(m, device) && m.j.Verdict == Bounded && m.row.Births.Sampled() && (most < 0 || m.row.Growth().Bytes > settled[most].row.Growth().Bytes) {
				most = i
			}
		}
		if most >= 0 {
			m := settled[most]
			m.j.Evidence, m.j.Verdict = Weak, Inconclusive
			m.j.Because("but its device's total grows steadily, and blocks of unrecorded steps may be assigned to the wrong lines; run longer to decide")
			open, settled = append(open, m), slices.Delete(settled, most, most+1)
		}
	}
	return open, settled
}
