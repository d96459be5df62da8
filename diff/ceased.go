package diff

import (
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// ceased says, as a clause, that a program ran on for long after the last snapshot of a step; "" if it did not, or
// times are unknown. It may have served, generated, or replayed a CUDA graph since. If snapshots by the clock cover
// that time, they are judged separately.
func ceased(run *snapshot.Run) string {
	if slices.ContainsFunc(run.Children, func(c *snapshot.Run) bool { return c.AfterStep > 0 && len(c.Snapshots) >= series.Testable }) {
		return ""
	}
	last := run.Snapshots[len(run.Snapshots)-1].Mark
	began, ended, known := existed(run)
	if !known || last.Time.Before(began) || last.Time.After(ended) {
		return "" // a clock that was set during the run tells nothing
	}
	whole, rest := ended.Sub(began), ended.Sub(last.Time)
	if float64(rest-ending) <= unwatchedShare*float64(whole) {
		return ""
	}
	what := "no step and no snapshot"
	if run.Info.Steps > last.Step {
		what = "no snapshot"
	}
	return fmt.Sprintf("%s came in the last %s of %s, after step %d", what, roughly(rest), roughly(whole), last.Step)
}

// existed returns when the process of the last snapshot, or else the command, began and ended, for a run that has
// ended. Other processes may have run before and after it. The command's times say nothing about a child.
func existed(run *snapshot.Run) (began, ended time.Time, known bool) {
	info, last := &run.Info, run.Snapshots[len(run.Snapshots)-1]
	if info.Finished == nil || info.Started.IsZero() {
		return began, ended, false
	}
	if run.Tree != nil && last.PID != 0 {
		if p := run.Tree.ProcessAt(last.PID, last.Mark.Time); p != nil {
			from, to := p.Points[0].Time, p.Points[len(p.Points)-1].Time
			if to.Before(last.Mark.Time) {
				to = last.Mark.Time // it ended before the next look
			}
			if to.After(*info.Finished) {
				to = *info.Finished // a part of a run that ends before its process does
			}
			return from, to, true
		}
	}
	return info.Started, *info.Finished, run.Role == ""
}

// afterSteps says, as a clause, why a process that continued after its last step may leak there although no leak was
// found; "" for no reason.
func (r *Result) afterSteps() string {
	if r.after == nil || r.after.Leaks() > 0 {
		return ""
	}
	step := r.after.run.AfterStep
	if e := r.after.Unexplained(); e != nil {
		return fmt.Sprintf("after step %d the process grows, +%s/s, source line unknown", step, snapshot.FormatBytes(e.Rate.Bytes.Value))
	}
	if n := r.after.Count(Inconclusive); n > 0 {
		return fmt.Sprintf("memory grew after step %d, and the run ended too early to judge it", step)
	}
	if r.after.unwatched != "" {
		return fmt.Sprintf("after step %d: %s", step, r.after.unwatched)
	}
	return ""
}
