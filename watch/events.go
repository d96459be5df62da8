package watch

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// unreadTold is how many unreadable snapshots are named in a look.
const unreadTold = 3

// Events are what is new in a look, in the order to report it; first says that it is the first look of all.
func (l *Look) Events(first bool) (events []report.Live) {
	for i := range l.Ranks {
		rank := &l.Ranks[i]
		tell := func(kind report.LiveKind, s *live.Suspect, said string) {
			e := report.Live{Kind: kind, Time: l.Time, Run: rank.Run, Rank: rank.Number(), In: rank.Result, Said: said}
			if s != nil {
				e.Finding, e.Fingerprint, e.Process, e.Device, e.Since = s.Finding, s.Fingerprint, s.Process, s.Device.String(), s.Since
			}
			events = append(events, e)
		}
		if first || l.Other {
			tell(report.LiveBegun, nil, fmt.Sprintf("%s, %s so far", rank.Run.Path, plural(rank.Read, "snapshot")))
		}
		for i, note := range rank.Unread {
			if i == unreadTold && len(rank.Unread) > unreadTold+1 {
				tell(report.LiveUnread, nil, fmt.Sprintf("%d more snapshots", len(rank.Unread)-i))
				break
			}
			tell(report.LiveUnread, nil, note)
		}
		if l.Failed != "" && i == 0 {
			tell(report.LiveUnread, nil, l.Failed+"; it is read again")
		}
		for _, s := range rank.Changed {
			switch s.State {
			case live.Suspected:
				if !l.Ended { // no more snapshots will decide it
					tell(report.LiveSuspected, s, "")
				}
			case live.Alarming:
				tell(report.LiveLeak, s, "")
			case live.Ended:
				tell(report.LiveOver, s, "")
			case live.Withdrawn:
				if !l.Ended { // the verdict at the end decides
					tell(report.LiveWithdrawn, s, "")
				}
			}
		}
		for _, e := range rank.Unexplained {
			tell(report.LiveGrowth, nil, report.Unexplained(e))
		}
		for i := range rank.Turned {
			o := &rank.Turned[i]
			kind := report.LiveWithinBudget
			if o.Broken() {
				kind = report.LiveOverBudget
			}
			tell(kind, nil, o.Said())
			events[len(events)-1].Budget = o
		}
		for _, s := range rank.AtEnd {
			tell(report.LiveLeak, s, "")
		}
		switch {
		case l.Died:
			tell(report.LiveEnded, nil, "all processes of the run are gone, and it does not say how it ended; "+rank.sum())
		case l.Ended:
			tell(report.LiveEnded, nil, exit(&rank.Run.Info)+"; "+rank.sum())
		}
	}
	return events
}

func exit(info *snapshot.Info) string {
	if info.ExitCode == nil {
		return "the run has ended"
	}
	return fmt.Sprintf("with exit code %d", *info.ExitCode)
}

// sum is the verdict on a rank, as for a run that is not watched.
func (r *Rank) sum() string {
	if r.Result == nil {
		return "too few snapshots for a verdict"
	}
	return report.Headline(r.Result)
}

// Alarms counts the current leaks, by the looks so far, and the suspected ones.
func (l *Look) Alarms() (leaks, suspected int) {
	for i := range l.Ranks {
		for _, s := range l.Ranks[i].Suspects {
			switch s.State {
			case live.Alarming:
				leaks++
			case live.Suspected:
				suspected++
			case live.Ended, live.Withdrawn:
			}
		}
	}
	return leaks, suspected
}

// OverBudget reports whether a budget is broken now.
func (l *Look) OverBudget() bool {
	return slices.ContainsFunc(l.Ranks, func(r Rank) bool { return budget.Broken(r.Budgets) })
}

// Leaks counts the current leaks: by the looks so far, or by the verdict if the run has ended.
func (l *Look) Leaks() int {
	leaks, _ := l.Alarms()
	for i := range l.Ranks {
		if r := l.Ranks[i].Result; l.Ended && r != nil {
			leaks = max(leaks, r.Leaks()+len(r.Children))
		}
	}
	return leaks
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
