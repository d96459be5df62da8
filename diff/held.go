package diff

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// joinHeld adds what is inconclusive to a leak of which the same list, map or graph holds
// the blocks: what only grows lets go of neither.
func (r *Result) joinHeld() {
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
			f.Rate, f.Pace = r.rateOf(f.Rows), nil
			f.Reasons = append(f.Reasons, fmt.Sprintf("what else %s holds is counted with it (stacks: %d)", f.Holder.Path, f.Joined))
			if f.RunsOut != nil {
				f.RunsOut = forecast(f.Rows[0], f.Rate, r.Last, r.stepTime())
			}
		}
		kept = append(kept, *f)
	}
	r.Findings = kept
}

// leakOf is the index of a leak that one holder keeps together with what is inconclusive;
// -1 for none.
func (r *Result) leakOf(maybe *Finding) int {
	if maybe.Verdict != Inconclusive || maybe.Bound != nil || maybe.Against != nil || !gathers(maybe.Holder) {
		return -1
	}
	for i := range r.Findings {
		leak := &r.Findings[i]
		if leak.Verdict == Leak && gathers(leak.Holder) && leak.Holder.Path == maybe.Holder.Path && deviceOf(leak.Rows[0]) == deviceOf(maybe.Rows[0]) {
			return i
		}
	}
	return -1
}

// gathers holds for a list, a map or a graph.
func gathers(h *snapshot.Holder) bool {
	return h != nil && (h.Items > 0 || h.Kind == "graph" || strings.Contains(h.Path, "[]"))
}
