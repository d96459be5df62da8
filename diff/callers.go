package diff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// origin is the innermost line of the program's that allocates on a device.
type origin struct {
	device series.DeviceID
	line   snapshot.Frame
}

// joinCallers makes one finding of leaks at one line that many stacks lead to, as through a recursion or a helper, if hardly
// anything else comes from that line. What may leak there counts with it. Leaks whose holders are known stay apart.
func (r *Result) joinCallers(tree *callTree) {
	leaks, grown := make(map[origin]int), make(map[origin]snapshot.Bytes)
	for i := range r.Findings {
		f := &r.Findings[i]
		if at, ok := f.origin(); ok && f.Verdict == Leak {
			leaks[at]++
			grown[at] += f.Growth().Bytes
		}
	}
	lead := make(map[origin]int) // index in kept
	var kept []Finding
	for i := range r.Findings {
		f := r.Findings[i]
		at, ok := f.origin()
		if !ok || leaks[at] < series.Enough || f.Verdict != Leak && f.Verdict != Inconclusive || float64(tree.healthyOf(at)) > (1-scatteredShare)*float64(grown[at]) {
			kept = append(kept, f)
			continue
		}
		if k, ok := lead[at]; ok {
			kept[k].Rows = append(kept[k].Rows, f.Rows...)
			continue
		}
		if f.Verdict != Leak {
			kept = append(kept, f)
			continue
		}
		lead[at] = len(kept)
		f.Headline, f.Pace = frame.Headline(f.Rows[0].Frames), nil
		kept = append(kept, f)
	}
	for at, k := range lead {
		f := &kept[k]
		r.measure(f)
		if j := r.judgeTogether(f.Rows); j.Verdict == Leak && !slices.ContainsFunc(f.Rows, func(row *Row) bool { return row.Births.Sampled() }) {
			f.Evidence, f.Reasons, f.Shape = j.Evidence, j.Reasons, j.Shape
		}
		f.Reasons = append(f.Reasons, fmt.Sprintf("leaks of %d stacks that lead to this line are one", leaks[at]))
	}
	if len(lead) > 0 {
		r.Findings = kept
	}
}

// origin is where all rows of a finding without a known holder come from; false where they come from several lines.
func (f *Finding) origin() (at origin, ok bool) {
	if !f.Unheld() || f.Against != nil || f.Bound != nil || f.graph || f.Headline < 0 || onLanguageHeap(f.Rows) {
		return origin{}, false
	}
	for i, row := range f.Rows {
		k := frame.Headline(row.Frames)
		if k < 0 {
			return origin{}, false
		}
		of := origin{row.On(), row.Frames[k]}
		if i > 0 && of != at {
			return origin{}, false
		}
		at = of
	}
	return at, true
}

// healthyOf is what is live of a line and does not leak.
func (t *callTree) healthyOf(at origin) (n snapshot.Bytes) {
	for _, row := range t.byOrigin[at.line] {
		if row.On() == at.device {
			n += row.After.Bytes
		}
	}
	return n
}
