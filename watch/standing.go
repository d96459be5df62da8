package watch

import (
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Standing is a summary of a run's state, for an experiment tracker that shows it beside the program's own metrics.
type Standing struct {
	Verdict string `json:"verdict"` // "leak", "possible leak", "growth", "no leak so far", "too early to tell"
	Text    string `json:"text"`    // the largest finding; "" for none
	Leaks   int    `json:"leaks"`   // reported leaks that go on
	// Step and InSeconds say when memory is full, the earliest of all findings; nil if that is unknown or far away.
	Step      *int64   `json:"step"`
	InSeconds *float64 `json:"in_seconds"`
}

// Standing sums up a look. Paths are relative to here. before is the previous standing, or nil: growth without a known line is reported
// once, and is taken over from it.
func (l *Look) Standing(before *Standing, here report.Folder) Standing {
	s := Standing{Verdict: "too early to tell"}
	s.Leaks, _ = l.Alarms()
	if before != nil && before.Verdict == string(report.LiveGrowth) {
		s.Verdict, s.Text = before.Verdict, before.Text
	}
	var worst *diff.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Result != nil && s.Verdict == "too early to tell" {
			s.Verdict = "no leak so far"
		}
		for _, g := range r.Unexplained {
			s.Verdict, s.Text = string(report.LiveGrowth), report.Unexplained(g)
		}
		for _, suspect := range r.Suspects {
			alarming := suspect.State == live.Alarming
			if suspect.Over() || s.Leaks > 0 && !alarming {
				continue
			}
			s.until(suspect.Finding.RunsOut, r.Result)
			if worst == nil || suspect.Finding.Rate.Bytes.Value > worst.Rate.Bytes.Value {
				worst = suspect.Finding
			}
		}
	}
	if worst != nil {
		s.Verdict, s.Text = string(report.LiveSuspected), report.Clause(worst, here)
		if s.Leaks > 0 {
			s.Verdict = string(report.LiveLeak)
		}
	}
	return s
}

// until takes a forecast if it is earlier than the current one.
func (s *Standing) until(at *diff.Forecast, r *diff.Result) {
	if at == nil || at.Beyond {
		return
	}
	if at.Step != snapshot.NoStep && (s.Step == nil || at.Step < *s.Step) {
		s.Step = &at.Step
	}
	if left := soon(at, r); left != never {
		if seconds := max(0, left.Round(time.Second).Seconds()); s.InSeconds == nil || seconds < *s.InSeconds {
			s.InSeconds = &seconds
		}
	}
}
