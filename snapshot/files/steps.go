package files

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/pprofio"
)

// setSteps takes steps from the names if the program did not report them. PyTorch's recorder counts calls of an optimizer since the
// recording began: two per step with two optimizers, one in four steps if gradients are accumulated. Numbers that only count the files
// do not replace these counts. It returns a note if counts were replaced.
func setSteps(list []opened) (note string) {
	stepsOfEpochs(list)
	byName := slices.Clone(list)
	slices.SortFunc(byName, func(a, b opened) int { return cmp.Compare(a.step, b.step) })
	if countFiles(byName) {
		return "the numbers in the names count the files: growth is given per second, by the profiles' times"
	}
	counts := pace{}
	named, rising, index := len(list) > 1, true, true
	for i, o := range byName {
		counts = append(counts, [2]int64{o.snapshot.Mark.Step, o.step})
		named = named && !o.told() && !o.anew && o.step != snapshot.NoStep
		if i == 0 {
			counts[0][0] = max(0, counts[0][0]) // it may be from before the first call
			continue
		}
		before := counts[i-1]
		named = named && o.step > before[1]
		rising = rising && counts[i][0] > before[0]
		index = index && o.bare && o.step == before[1]+1 && counts[i][0] > before[0]+1
	}
	if !named || rising && index {
		for _, o := range list {
			moveTo(o.snapshot, o.best(), nil)
		}
		return ""
	}
	if !rising {
		counts = nil
	}
	replaced := 0
	for _, o := range list {
		if o.snapshot.Mark.StepCounted && o.snapshot.Mark.Step != o.step {
			replaced++
		}
		moveTo(o.snapshot, o.step, counts)
	}
	switch {
	case replaced == 0:
		return ""
	case !rising:
		return fmt.Sprintf("%s counted steps from when the recording began, which do not rise; the steps in their names are taken", plural(replaced, "snapshot"))
	}
	first, last := counts[0], counts[len(counts)-1]
	return fmt.Sprintf("steps are those in the names, %d to %d, for which the files count calls of an optimizer, %d to %d", first[1], last[1], first[0], last[0])
}

// countFiles reports whether Go's heap profiles, in the order of the numbers in their names, were
// fetched one by one: no word says that the numbers are steps, they rise by one, and so does the
// clock. A server has no steps.
func countFiles(byName []opened) bool {
	for i, o := range byName {
		s := o.snapshot
		if !o.bare || o.step == snapshot.NoStep || s.Mark.Step != snapshot.NoStep || s.Producer != pprofio.GoHeap || s.Mark.Time.IsZero() {
			return false
		}
		if i > 0 && (o.step != byName[i-1].step+1 || !s.Mark.Time.After(byName[i-1].snapshot.Mark.Time)) {
			return false
		}
	}
	return len(byName) > 2
}

// pace holds what snapshots count, and the steps in their names, both rising.
type pace [][2]int64

// step is the step for a count: interpolated between the snapshots around it, outside them by the pace of all.
func (p pace) step(count int64) int64 {
	i := sort.Search(len(p), func(i int) bool { return p[i][0] >= count })
	from, to := p[max(i-1, 0)], p[min(i, len(p)-1)]
	if i == 0 || i == len(p) {
		from, to = p[0], p[len(p)-1]
	}
	part := float64(count-from[0]) / float64(to[0]-from[0])
	return max(0, from[1]+int64(math.Floor(part*float64(to[1]-from[1])+1e-9)))
}

// told reports whether the program itself reported the step.
func (o *opened) told() bool {
	return o.snapshot.Mark.Step != snapshot.NoStep && !o.snapshot.Mark.StepCounted
}

// best is the snapshot's own step, else its name's.
func (o *opened) best() int64 {
	if o.snapshot.Mark.Step != snapshot.NoStep || o.anew {
		return o.snapshot.Mark.Step
	}
	return o.step
}

// stepsOfEpochs handles steps in names that begin again in each epoch, if the names also have the epoch: they give the order, but no
// step of the run.
func stepsOfEpochs(list []opened) {
	sorted, anew := slices.SortedFunc(slices.Values(list), compareEpochs), false
	for i, o := range sorted {
		if o.epoch == snapshot.NoStep || o.step == snapshot.NoStep || i > 0 && o.epoch == sorted[i-1].epoch && o.step == sorted[i-1].step {
			return
		}
		anew = anew || i > 0 && o.step <= sorted[i-1].step
	}
	for i := range list {
		list[i].anew = anew
	}
}

// compareEpochs orders snapshots by the epochs, then the steps in their names.
func compareEpochs(a, b opened) int {
	return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.step, b.step))
}

// moveTo renames the snapshot's step. Births go by the pace, or without one keep their
// distance to it.
func moveTo(s *snapshot.Snapshot, step int64, counts pace) {
	was := s.Mark.Step
	if was == step {
		return
	}
	for i, b := range s.Blocks.BirthStep {
		switch {
		case was == snapshot.NoStep || b == snapshot.NoStep:
		case counts != nil:
			s.Blocks.BirthStep[i] = counts.step(b)
		default:
			s.Blocks.BirthStep[i] = b - was + step
		}
	}
	s.Mark.Step, s.Mark.StepCounted = step, false
}
