package watch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
)

// Condition says when to stop a run; the zero value is never.
type Condition struct {
	Leak   bool          // when a leak is reported
	Budget bool          // or a budget is broken
	Within time.Duration // or memory will be full within this time, also by a suspected leak; 0 for never
}

// Or is met if one of two conditions is.
func (c Condition) Or(d Condition) Condition {
	return Condition{Leak: c.Leak || d.Leak, Budget: c.Budget || d.Budget, Within: max(c.Within, d.Within)}
}

// ParseCondition reads "leak", "budget", or "forecast < 30m".
func ParseCondition(text string) (Condition, error) {
	switch strings.TrimSpace(text) {
	case "leak":
		return Condition{Leak: true}, nil
	case "budget":
		return Condition{Budget: true}, nil
	}
	name, limit, found := strings.Cut(text, "<")
	if found && strings.TrimSpace(name) == "forecast" {
		if d, err := time.ParseDuration(strings.TrimSpace(limit)); err == nil && d > 0 {
			return Condition{Within: d}, nil
		}
	}
	return Condition{}, errors.New(`want leak, budget, or "forecast < 30m"`)
}

// Met says why a run should be stopped, given a look at it; "" if it should not.
func (c Condition) Met(l *Look) string {
	if c.Budget && l.OverBudget() {
		return "a budget is broken"
	}
	for i := range l.Ranks {
		for _, s := range l.Ranks[i].Suspects {
			if s.Over() {
				continue
			}
			if c.Leak && s.State == live.Alarming {
				return "a leak is reported"
			}
			if at := s.Finding.RunsOut; c.Within > 0 && at != nil && !at.Beyond && soon(at, l.Ranks[i].Result) < c.Within {
				return fmt.Sprintf("memory is full within %v", c.Within)
			}
		}
	}
	return ""
}

// never is longer than any forecast.
const never = time.Duration(1<<63 - 1)

// soon is the time from now until a forecast.
func soon(at *diff.Forecast, r *diff.Result) time.Duration {
	if at.After <= 0 {
		return never
	}
	if taken := r.Last.Mark.Time; !taken.IsZero() {
		return at.After - time.Since(taken)
	}
	return at.After
}

// topmost are the recorded processes that no other recorded process has started; if none is recorded, the processes that no other has
// started. A shell around the program would not pass on a signal.
func topmost(all []*snapshot.TreeProcess) (top []*snapshot.TreeProcess) {
	of := all
	var recorded []*snapshot.TreeProcess
	for _, p := range all {
		if p.Points[len(p.Points)-1].Recorded {
			recorded = append(recorded, p)
		}
	}
	if len(recorded) > 0 {
		of = recorded
	}
	known := make(map[int]bool)
	for _, p := range of {
		known[p.PID] = true
	}
	for _, p := range of {
		if !known[p.Parent] {
			top = append(top, p)
		}
	}
	return top
}

func anyAlive(all []*snapshot.TreeProcess) bool {
	for _, p := range all {
		if alive(p) {
			return true
		}
	}
	return false
}
