package diff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// leastMade is how many objects a line must allocate per item of the container whose items it allocates, or bytes per
// byte of a buffer, at least.
const leastMade = 0.8

// nameAlongside finds the holder of leaks on Python's heap without one, and joins them into one leak: a container
// that grows in proportion to each. An endless thread allocates with many lines, and only Python's own modules lead
// to it, which a search reaches last.
func (r *Result) nameAlongside(rows []Row) {
	for i := range rows {
		row := &rows[i]
		h, site := holder(r.Last, row), r.Series.Site(row)
		if h == nil || h.Bound > 0 || site == nil {
			continue
		}
		j, ok := r.becomesLonger(row, site)
		if !ok {
			continue
		}
		most := -1
		for k := range r.Findings {
			f := &r.Findings[k]
			if f.Verdict == Leak && f.Headline >= 0 && f.Rate.Unit == j.Rate.Unit && r.makes(f, h, site) && (most < 0 || f.Growth().Bytes > r.Findings[most].Growth().Bytes) {
				most = k
			}
		}
		if most < 0 || !mayTake(h, r.Findings[most].Rate.Bytes.Value/j.Rate.Blocks.Value) {
			continue
		}
		lead := r.Findings[most]
		r.Findings = slices.Delete(r.Findings, most, most+1)
		lead.Reasons = append(lead.Reasons, fmt.Sprintf("%s becomes longer in proportion", h.Path))
		r.takeIn(&lead, h, site, false)
		lead.Holder, lead.filled = h, true
		r.Findings = append(r.Findings, lead)
	}
}

// takeIn adds to a leak the lines of Python's heap that allocate the items of its container. If no line was seen to
// add items, the leak is placed at the line that grew most. With within, the leak's growth is the process's, which
// includes that of the lines.
func (r *Result) takeIn(lead *Finding, h *snapshot.Holder, site *SiteSeries, within bool) {
	joined := make(map[*Row]bool)
	var most *Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak && f.Verdict != Inconclusive || f.Rate.Unit != lead.Rate.Unit || !r.makes(f, h, site) {
			continue
		}
		joined[f.Rows[0]] = true
		switch {
		case onLanguageHeap(lead.Rows):
			lead.Rows = append(lead.Rows, f.Rows...)
		case within:
			lead.Behind = append(lead.Behind, f.Rows...)
		default:
			r.putBehind(lead, f.Rows, f.Rate)
			lead.Beside += f.Growth().Bytes
		}
		if f.Headline >= 0 && (most == nil || f.Growth().Bytes > most.Growth().Bytes) {
			most = f
		}
	}
	if onLanguageHeap(lead.Rows) {
		r.measure(lead)
	} else if most != nil && lead.Headline < 0 {
		lead.Rows[0].Frames, lead.Headline = most.Rows[0].Frames, most.Headline
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return joined[f.Rows[0]] })
}

// makes reports whether the lines of a finding on Python's heap may allocate the items of a container: they have no
// known holder, the container grows in proportion, and no other line was seen to extend it. They allocate at least
// about one object per item. A buffer grows by about the bytes that they allocate.
func (r *Result) makes(f *Finding, h *snapshot.Holder, site *SiteSeries) bool {
	if f.Against != nil || !onLanguageHeap(f.Rows) || !f.Unheld() || !r.inProportion(site, r.bytesOf(f)) {
		return false
	}
	if h.From != snapshot.NoStack && f.Headline >= 0 && !r.addsTo(f, h) {
		return false
	}
	made := r.bytesOf(f)
	if h.Noun() == "item" {
		made = r.blocksOf(f)
	}
	from, last := slices.IndexFunc(made, func(n float64) bool { return n > 0 }), len(made)-1
	if from < 0 {
		return false
	}
	grown, longer := made[last]-made[from], float64(site.Blocks[last]-site.Blocks[from])
	return grown >= leastMade*longer && (h.Noun() == "item" || grown <= mostTaken*longer)
}
