package diff

import (
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// observed clears memory that profilers hold for themselves, as long as it is little: each observation leaves a few
// bytes.
func (r *Result) observed(row *Row, j *judge.Judgement) {
	if j.Verdict != Leak && j.Verdict != Inconclusive || !frame.ByProfiler(row.Frames) {
		return
	}
	if r.profilers == nil {
		var own, all snapshot.Bytes
		for i := range r.Rows {
			held := r.Rows[i].After.Bytes
			if all += held; frame.ByProfiler(r.Rows[i].Frames) {
				own += held
			}
		}
		little := own <= max(profilerBytes, snapshot.Bytes(profilerShare*float64(all)))
		r.profilers = &little
	}
	if *r.profilers {
		j.Reasons = nil
		j.Call(Clean, Weak, "its blocks were allocated by a profiler, not by the program")
	}
}
