package diff

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// unwatchedShare is the share of a run that a recorder may leave unwatched at its end. By design it leaves up to a
// quarter: a costly snapshot comes when a quarter more steps have passed.
const unwatchedShare = 1. / 3

// unwatched says, as a clause, which part of a recorded run was not watched; "" if snapshots reach its end, and for
// memdiag's own workloads, whose recording ends with a snapshot.
func unwatched(run *snapshot.Run) string {
	info, all := &run.Info, run.Snapshots
	if info.Workload != "" || len(all) < 2 {
		return ""
	}
	chosen := info.Command != nil && info.Every == 0 // the recorder chose the moments
	last := all[len(all)-1].Mark
	if last.Step != snapshot.NoStep {
		switch before := all[len(all)-2].Mark.Step; {
		case float64(info.Steps-last.Step) > unwatchedShare*float64(info.Steps):
			return fmt.Sprintf("no snapshot was taken after step %d of %d", last.Step, info.Steps) + shorter(info, chosen)
		case chosen && thinned(len(all), float64(last.Step-before), float64(last.Step-max(0, all[0].Mark.Step))):
			return fmt.Sprintf("no snapshot was taken between step %d and the last one, of step %d", before, last.Step) + shorter(info, chosen)
		}
		return ceased(run)
	}
	// A clock that was set during the run shows nothing.
	if !chosen || info.Finished == nil || last.Time.Before(info.Started) || last.Time.After(*info.Finished) {
		return ""
	}
	if text := starved(all); text != "" {
		return text
	}
	began, ended := info.Started, *info.Finished
	if run.AfterStep > 0 {
		began, ended, _ = existed(run)
	}
	whole, rest := ended.Sub(began), ended.Sub(last.Time)
	switch before := all[len(all)-2].Mark.Time; {
	case rest > ending && float64(rest) > unwatchedShare*float64(whole):
		return fmt.Sprintf("no snapshot was taken in the last %s of a run of %s", roughly(rest), roughly(whole))
	case !before.Before(info.Started) && thinned(len(all), last.Time.Sub(before).Seconds(), last.Time.Sub(info.Started).Seconds()):
		return fmt.Sprintf("no snapshot was taken in the %s before the last one", roughly(last.Time.Sub(before)))
	}
	return ""
}

// evenly is how many snapshots a run gets with the interval that shorter names.
const evenly = 20

// shorter names an interval with which the recorder would have watched the whole run, if it chose the moments: where a
// snapshot costs as much as many steps, it takes few.
func shorter(info *snapshot.Info, chosen bool) string {
	if !chosen || info.Steps < evenly || len(info.Unseen) > 0 { // recording may have stopped
		return ""
	}
	return fmt.Sprintf(" (record with --every %d)", info.Steps/evenly)
}

// starvedShare is the share of its time that a starved program waited for a processor, and leastWorked how much time
// without waiting is enough work.
const (
	starvedShare = 0.75
	leastWorked  = time.Second
)

// starved says, as a clause, that a program got hardly any processor time: on a busy machine, a program that leaks a
// block per request may serve ten requests in six seconds.
func starved(all []*snapshot.Snapshot) string {
	first, last := all[0], all[len(all)-1]
	span, waited := last.Mark.Time.Sub(first.Mark.Time), last.Waited-first.Waited
	if first.Waited == 0 || span <= 0 || float64(waited) < starvedShare*float64(span) || span-waited > leastWorked {
		return ""
	}
	return fmt.Sprintf("the program waited for a processor for %.0f %% of the time, and did too little to show a leak: the machine was busy", 100*min(1, float64(waited)/float64(span)))
}

// nearEnd is where the end of a run begins, as a share of the run.
const nearEnd = 0.8

// emptied says, as a clause, that the last snapshot by the clock came after the work: memory that had grown steadily
// until near the end is mostly free there; "" otherwise. The function that held it may have returned.
func (r *Result) emptied() string {
	from, x := r.Series.WarmUp(), r.Series.Axis.X
	for device, d := range r.Series.Devices {
		if r.Series.Axis.Unit != Second || !d.Kind.InProcess() {
			continue
		}
		total := r.onDevice(device)
		last := len(total) - 1
		peak := last
		for i, n := range slices.Backward(total) {
			if n > total[peak] {
				peak = i
			}
		}
		if peak-from < series.Testable || x[peak] < x[0]+nearEnd*(x[last]-x[0]) {
			continue
		}
		at, y := risingFloors(x[from:peak+1], total[from:peak+1])
		if y != nil && 2*(total[last]-y[0]) < y[len(y)-1]-y[0] && steadily(r.options.Without, at, y) {
			return "memory grew steadily until shortly before the end, and most of it was free at the last snapshot: the function that held it may have returned"
		}
	}
	return ""
}

// ending is how long a program may take to end after its last snapshot. Of 55 runs of programs that step until their
// end, the last snapshot came 0.8 to 4 s before the end: beyond these 2 s at most 0.26 of the run, and without them
// otherwise up to 0.08.
const ending = 2 * time.Second

// thinned reports whether the last snapshot came so long after the one before it that growth between them is one
// jump, whatever it was. A few snapshots are always far apart.
func thinned(snapshots int, apart, length float64) bool {
	return snapshots > series.Testable && apart > unwatchedShare*length
}

func roughly(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.3g s", d.Round(100*time.Millisecond).Seconds())
	}
	return Second.Text(d.Seconds())
}

// Run is the judged run: the last part of one that was resumed.
func (r *Result) Run() *snapshot.Run { return r.run }

// Doubt says, as a clause, why a run may leak although no leak was found; "" for no reason. unseen is the memory of
// interest that was not recorded. Growth of the process that no stack explains is separate: see Unexplained.
func (r *Result) Doubt(unseen []snapshot.Unseen) string {
	info := &r.run.Info
	switch {
	case len(unseen) > 0:
		return unseen[0].What
	case !r.Comparable:
		return "the snapshots cannot be compared"
	case len(r.Rows) == 0 && !r.stayedEmpty():
		return "no snapshot holds a live block"
	case r.run.Partial:
		return "the unreadable part of the run may hide a leak"
	case !info.Started.IsZero() && info.Finished == nil:
		return "the run has not finished, or was killed; later leaks were not recorded"
	case info.ExitCode != nil && *info.ExitCode != 0:
		return fmt.Sprintf("the run ended with code %d; later leaks were not recorded", *info.ExitCode)
	}
	return cmp.Or(r.unwatched, r.afterSteps(), r.seldom())
}

// stayedEmpty reports whether no block is live because Python's heap did not grow, which the recorder measures as a
// whole before it searches for lines, or because no tensor on the CPU was retained, in a run that would have shown a
// leak.
func (r *Result) stayedEmpty() bool {
	counted := false
	for _, d := range r.Last.Devices {
		switch d.Kind {
		case snapshot.Process, snapshot.Items, snapshot.Graph: // without bytes of their own
		case snapshot.PythonHeap, snapshot.CPU:
			if d.Meters.Allocated != 0 {
				return false
			}
			counted = true
		default:
			return false
		}
	}
	return counted && r.Least().Every > 0
}

// unsure weakens a verdict on a run of which a part was not watched.
func (r *Result) unsure(j *judge.Judgement) {
	if r.unwatched == "" || j.Evidence != Strong {
		return
	}
	j.Evidence = Weak
	j.Because("%s", r.unwatched)
}

// WouldShow reports whether the process's own memory would be reported as growing if it had also grown at this rate.
// It is found by trial, as Least is.
func (r *Result) WouldShow(rate Rate) bool {
	s := r.Series
	if _, rest := s.Unrecorded(); len(rest) > 0 && rate.Unit == s.Axis.Unit {
		grown := slices.Clone(rest)
		for i, x := range s.Axis.X {
			grown[i] += rate.Bytes.Value * (x - s.Axis.X[0])
		}
		return r.growsBesides(grown) != nil
	}
	return false
}
