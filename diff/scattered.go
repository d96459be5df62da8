package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// scatteredShare is the least share of a device's growth that must come through one call, and leastScattered the
// least number of sites below that call.
const scatteredShare, leastScattered = 0.9, 2 * series.Enough

// scattered finds leaks whose blocks have a new stack each time, for example below generated code or a recursion.
// Each site rises once and settles, while the device grows steadily. If no site of a device may leak by itself, the
// sites below one call are judged as one site. It returns the leaks, their rows, and the other settled sites.
func (r *Result) scattered(open, settled []member) (leaks []cluster, of, rest []member) {
	rest = settled
	for device := range r.Series.Devices {
		if !r.growsSettled(device, open) {
			continue
		}
		from, total := r.Series.WarmUp(), r.onDevice(device)
		below := r.scatteredBelow(device, total[len(total)-1]-total[from])
		if len(below) < leastScattered || slices.ContainsFunc(below, func(row *Row) bool { return row.Births.Sampled() }) {
			continue // a recorder that watches only some steps may have assigned blocks to the wrong lines
		}
		j := r.judgeTogether(below)
		if j.Verdict != Leak && j.Verdict != Inconclusive {
			continue
		}
		j.Because("each of %d call sites below this call holds a part", len(below))
		in := make(map[*Row]bool, len(below))
		for _, row := range below {
			in[row] = true
		}
		c := cluster{j: j}
		var others []member
		for _, m := range rest {
			if !in[m.row] {
				others = append(others, m)
				continue
			}
			m.j = j
			of, c.rows = append(of, m), append(c.rows, m.row)
		}
		slices.SortStableFunc(c.rows, func(a, b *Row) int { return cmp.Compare(b.Growth().Bytes, a.Growth().Bytes) })
		leaks, rest = append(leaks, c), others
	}
	return leaks, of, rest
}

// scatteredBelow returns the sites of a device below the user's call through which most of the growth came. Of
// several such calls, it takes the one with the fewest sites, then the innermost.
func (r *Result) scatteredBelow(device int, growth float64) (below []*Row) {
	from, last := r.Series.WarmUp(), len(r.Series.Marks)-1
	through, grown := make(map[snapshot.Frame][]*Row), make(map[snapshot.Frame]float64)
	var calls []snapshot.Frame // innermost first, row by row
	for i := range r.Rows {
		row := &r.Rows[i]
		site := r.Series.Site(row)
		if site == nil || site.Device != device {
			continue
		}
		own := frame.Own(row.Frames)
		for _, f := range row.Frames {
			rows := through[f]
			if !own(f) || len(rows) > 0 && rows[len(rows)-1] == row {
				continue
			}
			if rows == nil {
				calls = append(calls, f)
			}
			through[f] = append(rows, row)
			grown[f] += float64(site.Bytes[last] - site.Bytes[from])
		}
	}
	for _, f := range calls {
		if rows := through[f]; grown[f] >= scatteredShare*growth && (below == nil || len(rows) < len(below)) {
			below = rows
		}
	}
	return below
}

// judgeTogether judges rows as if they were one site.
func (r *Result) judgeTogether(rows []*Row) judge.Judgement {
	one := Row{Device: rows[0].Device, Key: rows[0].Key}
	var sum SiteSeries
	for _, row := range rows {
		one.Before, one.After = one.Before.Plus(row.Before), one.After.Plus(row.After)
		one.Born, one.Died = one.Born.Plus(row.Born), one.Died.Plus(row.Died)
		one.Births.Add(&row.Births)
		if site := r.Series.Site(row); site != nil {
			sum.Add(site)
		}
	}
	var h *series.History
	if sum.Blocks != nil {
		h = series.HistoryOf(r.Series, &sum)
	}
	ask := judge.Question{Row: &one, History: h, First: r.First, Last: r.Last, Discovery: h.Chance(), Tides: r.tides}
	j := ask.Judge(r.options.Without)
	r.doubt(&j)
	return j
}
