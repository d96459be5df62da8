package diff

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// joinLists makes one finding of leaks in step of which the same list, map or graph holds
// the blocks: each entry has a part of each line.
func (r *Result) joinLists() {
	var kept []Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		at := slices.IndexFunc(kept, func(lead Finding) bool {
			return lead.Verdict == Leak && f.Verdict == Leak && lead.Shape == f.Shape && lead.Against == nil && sameList(&lead, f) && r.inStep(lead.Rows[0], f.Rows[0])
		})
		if at < 0 {
			kept = append(kept, *f)
			continue
		}
		lead := &kept[at]
		lead.Rows = append(lead.Rows, f.Rows...)
		r.measure(lead)
		lead.Reasons = append(lead.Reasons, fmt.Sprintf("%s holds what %s makes as well, in step", f.Holder.Path, place(f)))
	}
	r.Findings = kept
}

// inStep holds for rows that grow in step.
func (r *Result) inStep(a, b *Row) bool {
	of := func(row *Row) *member { return &member{row: row, h: historyOf(r.Series, r.Series.Site(row))} }
	return inStep(of(a), of(b))
}

// measure sets what a finding tells of all its rows.
func (r *Result) measure(f *Finding) {
	f.Rate = r.rateOf(f.Rows)
	if f.Pace != nil {
		f.Pace = r.pace(f.Rows, &judgement{rate: f.Rate, shape: f.Shape})
	}
	if f.RunsOut != nil {
		f.RunsOut = r.forecast(f.Rows[0], f.Rate)
	}
}

// place is a finding's line, for a reason.
func place(f *Finding) string {
	frames := f.Rows[0].Frames
	if f.Headline < 0 {
		return "another stack"
	}
	return fmt.Sprintf("%s:%d", path.Base(frames[f.Headline].File), frames[f.Headline].Line)
}

// sameList holds for findings of one device whose blocks one list, map or graph holds.
func sameList(a, b *Finding) bool {
	return gathers(a.Holder) && gathers(b.Holder) && a.Holder.Path == b.Holder.Path && deviceOf(a.Rows[0]) == deviceOf(b.Rows[0])
}

// joinHeld adds what is inconclusive to a leak of which the same list, map or graph holds
// the blocks: what only grows lets go of neither. Of a graph any part may be the one that
// was seen often enough, such as a batch's labels: its line is told from all of it.
func (r *Result) joinHeld(tree *callTree) {
	var kept []Finding
	joined := make(map[int]bool)
	for i := range r.Findings {
		maybe := &r.Findings[i]
		if at := r.leakOf(maybe); at >= 0 {
			leak := &r.Findings[at]
			leak.Rows, leak.Joined = append(leak.Rows, maybe.Rows...), leak.Joined+len(maybe.Rows)
			joined[i] = true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if joined[i] {
			continue
		}
		if f.Joined > 0 {
			f.Pace = nil
			lead := f.Rows[0]
			if f.Holder.Kind == "graph" {
				f.graph = true
				endFirst(f.Rows)
				f.Headline = r.headOf(&cluster{rows: f.Rows, graph: true}, tree)
			} else if largestFirst(f.Rows); f.Rows[0] != lead {
				f.Headline = r.head(f.Rows[:1], tree)
			}
			r.measure(f)
			f.Reasons = append(f.Reasons, fmt.Sprintf("what else %s holds is counted with it (stacks: %d)", f.Holder.Path, f.Joined))
		}
		kept = append(kept, *f)
	}
	r.Findings = kept
}

// leakOf is the index of a leak that one holder keeps together with what is inconclusive;
// -1 for none.
func (r *Result) leakOf(maybe *Finding) int {
	if maybe.Verdict != Inconclusive || maybe.Bound != nil || maybe.Against != nil {
		return -1
	}
	return slices.IndexFunc(r.Findings, func(leak Finding) bool { return leak.Verdict == Leak && sameList(&leak, maybe) })
}

// gathers holds for a list, a map or a graph.
func gathers(h *snapshot.Holder) bool {
	return h != nil && (h.Items > 0 || h.Kind == "graph" || strings.Contains(h.Path, "[]"))
}
