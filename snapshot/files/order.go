package files

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// arrange puts a run's snapshots into the order in which they were taken: by steps; if none has a step, by the count of memdiag's
// recorder, if all have it; if some have none, by time, if all have it; else by the epochs and steps, or the numbers, in the names. A
// snapshot that fits nowhere is left out, except one of an out-of-memory error, which comes last. note says what was done without
// steps. If the order is unknown, it returns an error: in a wrong order a leak may look like its opposite.
func arrange(list []opened) (ordered []opened, note string, err error) {
	var stepless []string
	for _, o := range list {
		if o.snapshot.Mark.Step == snapshot.NoStep {
			stepless = append(stepless, o.name)
		}
	}
	silent := "snapshot that tells no step, nor does its name"
	if len(stepless) != 1 {
		silent = "snapshots that tell no step, nor do their names"
	}
	silent = fmt.Sprintf("%d %s", len(stepless), silent)
	switch {
	case len(stepless) == 0:
		slices.SortStableFunc(list, compareSteps)
		return list, "", nil
	case len(stepless) == len(list) && byTicks(list):
		return list, silent + "; the order is the recorder's count", nil
	case byClock(list):
		return list, silent + "; the order is the clock's" + stepsByClock(list), nil
	case len(stepless) == len(list) && list[0].anew:
		slices.SortFunc(list, compareEpochs)
		return list, "the steps in the names begin anew in each epoch; growth is given per snapshot", nil
	case len(stepless) == len(list) && numbered(stepless):
		slices.SortStableFunc(list, func(a, b opened) int { return compareNames(a.name, b.name) })
		return list, silent + "; the order is the names'", nil
	case len(stepless) == len(list):
		return nil, "", errors.New("the order of its snapshots is unknown: they have no step and no time, and no number in their names")
	}
	var left []string
	list = slices.DeleteFunc(list, func(o opened) bool {
		out := o.snapshot.Mark.Step == snapshot.NoStep && !isOutOfMemory(o.name)
		if out {
			left = append(left, o.name)
		}
		return out
	})
	slices.SortStableFunc(list, compareSteps)
	if len(left) == 0 {
		return list, silent + "; it comes last, as an out-of-memory error does", nil
	}
	return list, fmt.Sprintf("%s; left out, since nothing tells where among the others: %s", silent, some(left)), nil
}

// sets are the first names of each set of snapshots, if a folder has several sets of the same steps whose names differ in more than
// digits, such as heap_0, heap_10 and allocs_0, allocs_10: more in one than in the other is then not growth. The largest set comes
// last. It is nil if there is only one.
func sets(list []opened) []string {
	steps := make(map[int64][]opened)
	for _, o := range list {
		if at := o.snapshot.Mark.Step; at != snapshot.NoStep && !slices.ContainsFunc(steps[at], o.sameSet) {
			steps[at] = append(steps[at], o)
		}
	}
	repeated := 0
	var first []opened
	for _, o := range list {
		at := steps[o.snapshot.Mark.Step]
		if len(at) < 2 {
			continue
		}
		if at[0].name == o.name {
			repeated++
		}
		if !slices.ContainsFunc(first, o.sameSet) {
			first = append(first, o)
		}
	}
	if repeated < 2 {
		return nil
	}
	size := func(of opened) (n int) {
		for _, o := range list {
			if o.sameSet(of) {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(first, func(a, b opened) int { return cmp.Compare(size(a), size(b)) })
	var names []string
	for _, o := range first {
		names = append(names, o.name)
	}
	return names
}

func (o opened) sameSet(p opened) bool { return withoutDigits(o.name) == withoutDigits(p.name) }

func compareSteps(a, b opened) int {
	x, y := a.snapshot.Mark.Step, b.snapshot.Mark.Step
	if (x == snapshot.NoStep) != (y == snapshot.NoStep) {
		return cmp.Compare(y, x) // the one without a step comes last
	}
	return cmp.Or(cmp.Compare(x, y), compareNames(a.name, b.name))
}

// isOutOfMemory recognizes the dump of an out-of-memory error by its name, as the observers of training libraries write it:
// oom_snapshot.pickle.
func isOutOfMemory(name string) bool {
	return strings.Contains(strings.ToLower(name), "oom")
}

// byTicks sorts snapshots that memdiag recorded by the clock, by their count, if all are such.
func byTicks(list []opened) bool {
	ticks := make(map[string]int)
	for _, o := range list {
		n, ok := rundir.TickOf(path.Base(filepath.ToSlash(o.name)))
		if !ok {
			return false
		}
		ticks[o.name] = n
	}
	slices.SortStableFunc(list, func(a, b opened) int { return cmp.Compare(ticks[a.name], ticks[b.name]) })
	return true
}

// byClock sorts snapshots by time, if all have different times, and the known steps rise with time.
func byClock(list []opened) bool {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b opened) int { return taken(a.snapshot).Compare(taken(b.snapshot)) })
	last := snapshot.NoStep
	for i, o := range sorted {
		at := taken(o.snapshot)
		if at.IsZero() || i > 0 && at.Equal(taken(sorted[i-1].snapshot)) {
			return false
		}
		if step := o.snapshot.Mark.Step; step != snapshot.NoStep {
			if step < last {
				return false
			}
			last = step
		}
	}
	copy(list, sorted)
	return true
}

// stepsByClock gives steps to the few snapshots that have none: interpolated between neighbours or, outside, at the pace of the nearest
// two. Rates need one unit, and the dump of an out-of-memory error would otherwise make all steps unusable. The list is in order of
// time. It returns a text for a note, or "" if it did nothing.
func stepsByClock(list []opened) string {
	var known []int
	for i, o := range list {
		if o.snapshot.Mark.Step != snapshot.NoStep {
			known = append(known, i)
		}
	}
	if len(known) < 3 || len(list)-len(known) > len(known)/2 {
		return ""
	}
	said := ""
	for i, o := range list {
		if o.snapshot.Mark.Step != snapshot.NoStep {
			continue
		}
		next, _ := slices.BinarySearch(known, i)
		from, to := known[max(next-1, 0)], known[min(next, len(known)-1)]
		switch next {
		case 0:
			to = known[1]
		case len(known):
			from = known[next-2]
		}
		a, b := list[from].snapshot, list[to].snapshot
		pace := float64(b.Mark.Step-a.Mark.Step) / float64(taken(b).Sub(taken(a)))
		step := a.Mark.Step + int64(math.Round(pace*float64(taken(o.snapshot).Sub(taken(a)))))
		step = max(step, 0)
		if i > 0 && step <= list[i-1].snapshot.Mark.Step {
			step = list[i-1].snapshot.Mark.Step + 1
		}
		if next < len(known) && step >= list[known[next]].snapshot.Mark.Step {
			continue // there is no step between
		}
		moveTo(o.snapshot, step, nil)
		o.snapshot.Mark.StepCounted = true
		said += fmt.Sprintf("; %s is taken for step %d", o.name, step)
	}
	return said
}

// taken is when a snapshot was taken, or its last recorded event; zero if neither is known.
func taken(s *snapshot.Snapshot) time.Time {
	if !s.Mark.Time.IsZero() {
		return s.Mark.Time
	}
	return s.History.Last
}
