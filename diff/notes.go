package diff

import (
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// ended reports the exit code of a run that failed, with the recorder's notes. What was not observed is in
// Result.NotSeen.
func ended(run *snapshot.Run) (out []string) {
	if run.Info.ExitCode == nil || *run.Info.ExitCode == 0 {
		return nil
	}
	out = []string{fmt.Sprintf("the run ended with exit code %d", *run.Info.ExitCode)}
	for _, n := range run.Info.Notes {
		if !slices.ContainsFunc(run.Info.Unseen, func(u snapshot.Unseen) bool { return u.What == n }) {
			out = append(out, "recorder: "+n)
		}
	}
	return out
}

// notes say what a reader must know before trusting the comparison.
func notes(r *Result) []string {
	var out []string
	a, b := r.First, r.Last
	if a.Mark.Step != snapshot.NoStep && a.Mark.Step == b.Mark.Step && r.Intermediate == 0 {
		out = append(out, fmt.Sprintf("both snapshots are of step %d: there is no rate per step", a.Mark.Step))
	}
	if b.Mark.Step != snapshot.NoStep && a.Mark.Step > b.Mark.Step {
		out = append(out, fmt.Sprintf("step %d is compared with the earlier step %d: growth is negative", a.Mark.Step, b.Mark.Step))
	}
	if !r.Comparable {
		out = append(out, r.stranger+"; new and freed blocks are net figures")
	}
	out = append(out, r.markNotes()...)
	if n := worthless(b); n > 0 {
		out = append(out, fmt.Sprintf("live blocks without a size in the last snapshot: %d; the snapshot is incomplete", n))
	}
	for _, d := range b.Devices {
		if d.Kind != snapshot.Process && d.Limit > 0 && d.Meters.Allocated > d.Limit {
			out = append(out, fmt.Sprintf("%s holds %s, more than its limit of %s: no forecast", series.DeviceOf(d), d.Meters.Allocated, d.Limit))
		}
	}
	out = append(out, r.retried()...)
	if r.Equal() {
		out = append(out, "the two snapshots are equal: compare two different ones")
	}
	return append(out, b.Notes...)
}

// retried names the devices whose allocator ran out of memory during the run, and when that began.
func (r *Result) retried() (out []string) {
	for i, last := range r.Last.Devices {
		before := func(s *snapshot.Snapshot) (retries, failed int64) {
			for _, d := range s.Devices {
				if d.Kind == last.Kind && d.Index == last.Index {
					return d.Retries, d.OutOfMemory
				}
			}
			return 0, 0
		}
		retries, failed := before(r.First)
		if last.Retries <= retries {
			continue
		}
		at := slices.IndexFunc(r.run.Snapshots, func(s *snapshot.Snapshot) bool { n, _ := before(s); return n > retries })
		text := fmt.Sprintf("%s was nearly full: its allocator found no memory, emptied its cache and tried again %s after %s", series.DeviceOf(r.Last.Devices[i]), timesText(last.Retries-retries), markName(r.run.Snapshots[max(at-1, 0)]))
		if n := last.OutOfMemory - failed; n > 0 {
			text += fmt.Sprintf(", and failed %s", timesText(n))
		}
		out = append(out, text)
	}
	return out
}

func timesText(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// markName is "step 40", or the time if there are no steps.
func markName(s *snapshot.Snapshot) string {
	if s.Mark.Step == snapshot.NoStep {
		return "the snapshot of " + s.Mark.Time.UTC().Format(time.TimeOnly)
	}
	return fmt.Sprintf("step %d", s.Mark.Step)
}

// markNotes report errors in the marks of a run's snapshots.
func (r *Result) markNotes() []string {
	var out []string
	once := func(note string) {
		if !slices.Contains(out, note) {
			out = append(out, note)
		}
	}
	all := r.run.Snapshots
	unknown := 0
	for i, s := range all {
		if s.Mark.Step == snapshot.NoStep {
			unknown++
		}
		if i == 0 || len(all) == 2 && s.Mark.Step == all[0].Mark.Step {
			continue
		}
		before := all[i-1].Mark
		switch {
		case s.Mark.Step == snapshot.NoStep && before.Step == snapshot.NoStep && s.Mark.Time.Before(before.Time) && !s.Mark.Time.IsZero():
			out = append(out, fmt.Sprintf("the clock was set back between snapshots %d and %d: the run is judged by %s", i, i+1, r.Series.Axis.Unit.JudgedBy()))
		case s.Mark.Step == snapshot.NoStep || before.Step == snapshot.NoStep:
		case s.Mark.Step == before.Step && s.Mark.Phase == before.Phase:
			once(fmt.Sprintf("two snapshots are of step %d: the run is judged by %s, not by steps", s.Mark.Step, r.Series.Axis.Unit.JudgedBy()))
		case s.Mark.Step > before.Step && s.Mark.Time.Before(before.Time) && !s.Mark.Time.IsZero():
			out = append(out, fmt.Sprintf("the clock was set back between steps %d and %d: times are unreliable", before.Step, s.Mark.Step))
		}
	}
	if unknown > 0 && unknown < len(all) {
		out = append(out, fmt.Sprintf("%d of %d snapshots have no step: the run is judged by %s", unknown, len(all), r.Series.Axis.Unit.JudgedBy()))
	}
	out = append(out, r.clockJump()...)
	if info := &r.run.Info; info.Command != nil && info.Every == 0 {
		return out // the recorder chose the steps, by their cost
	}
	return append(out, missing(all)...)
}

// faraway is how many times the usual interval two snapshots are apart if that was not intended.
const faraway = 1000

// clockJump reports an interval by the clock that is far longer than the others.
func (r *Result) clockJump() []string {
	x := r.Series.Axis.X
	if r.Series.Axis.Unit != Second || len(x) < 4 {
		return nil
	}
	var apart []float64
	widest := 0
	for i := 1; i < len(x); i++ {
		apart = append(apart, x[i]-x[i-1])
		if apart[i-1] > apart[widest] {
			widest = i - 1
		}
	}
	usual := slices.Sorted(slices.Values(apart))[len(apart)/2]
	if apart[widest] < faraway*usual {
		return nil
	}
	return []string{fmt.Sprintf("%s passed between snapshots %d and %d; the usual interval is %s. If the clock was set or the program paused, rates are wrong: compare only snapshots before the gap, or only those after it",
		Second.Text(apart[widest]), widest+1, widest+2, series.Duration(usual).Round(time.Millisecond))}
}

// missing reports where snapshots are missing from a series with equal distances: most distances are equal, and one
// is at least twice as long.
func missing(all []*snapshot.Snapshot) []string {
	var apart []int64
	for i := 1; i < len(all); i++ {
		a, b := all[i-1].Mark.Step, all[i].Mark.Step
		if a == snapshot.NoStep || b <= a {
			return nil
		}
		apart = append(apart, b-a)
	}
	if len(apart) < 3 {
		return nil
	}
	usual := slices.Sorted(slices.Values(apart))[len(apart)/2]
	equal, widest := 0, 0
	for i, d := range apart {
		if d == usual {
			equal++
		}
		if d > apart[widest] {
			widest = i
		}
	}
	if 2*equal <= len(apart) || apart[widest]/2 < usual {
		return nil
	}
	if apart[widest]/faraway >= usual {
		return []string{fmt.Sprintf("steps %d and %d are %s apart, others %d. If they count in different units, rates are wrong: compare only snapshots before the gap, or only those after it", all[widest].Mark.Step, all[widest+1].Mark.Step, snapshot.Grouped(apart[widest]), usual)}
	}
	return []string{fmt.Sprintf("there is no snapshot between steps %d and %d, while most are %d apart: some may be missing", all[widest].Mark.Step, all[widest+1].Mark.Step, usual)}
}

// worthless counts live blocks without a size, which no allocator returns.
func worthless(s *snapshot.Snapshot) int {
	n := 0
	if s.Blocks.Count != nil {
		return 0 // a total may be zero, such as for JAX's programs on a CPU
	}
	for i, state := range s.Blocks.State {
		if state == snapshot.Live && s.Blocks.Size[i] <= 0 {
			n++
		}
	}
	return n
}
