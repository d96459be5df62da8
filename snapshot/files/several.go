package files

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// OpenSnapshots reads files as a run's snapshots, in the order given, whatever their ranks. Steps come from the snapshots or from the
// names, as in OpenRun. All share one table of stacks. A file that cannot be read is an error. Of more than two files, duplicates count
// once.
func OpenSnapshots(paths ...string) (*snapshot.Run, error) { return Opener{}.OpenSnapshots(paths...) }

// OpenSnapshots is the function of that name with the opener's bounds.
func (o Opener) OpenSnapshots(paths ...string) (*snapshot.Run, error) {
	run := &snapshot.Run{}
	into, names := o.newShared(), newNamePatterns()
	var list []opened
	for i, path := range paths {
		o.reading(path, i+1, len(paths))
		s, err := o.openInto(path, into)
		if broken, ok := errors.AsType[*snapshot.FormatError](err); ok && len(paths) > 2 {
			broken.Hint = strings.TrimPrefix(broken.Hint+"; or name the others alone: of a folder they are read without it", "; or ")
		}
		if err != nil {
			return nil, err
		}
		_, rank := names.read(filepath.ToSlash(path))
		if s.Rank == snapshot.NoRank {
			s.Rank = rank
		}
		list = append(list, names.opened(s, path))
	}
	if len(list) > 2 {
		var note string
		if list, note = once(list); note != "" {
			run.Notes = append(run.Notes, note)
		}
	}
	if note := setSteps(list); note != "" {
		run.Notes = append(run.Notes, note)
	}
	if len(list) > 2 && sortGiven(list) {
		run.Notes = append(run.Notes, "the snapshots were not given in the order in which they were taken, and were put into it")
	}
	for _, o := range list {
		run.Files = append(run.Files, o.name)
		run.Snapshots = append(run.Snapshots, o.snapshot)
	}
	return run, nil
}

// sortGiven sorts snapshots that were named one by one by their steps, or if none has a step by the recorder's count or by time. The
// shell's "snapshot_*" is not in this order: it lists snapshot_16 after snapshot_104. It reports whether the order changed. If two have
// the same step, as in a run and its repetition, the user's order is kept.
func sortGiven(list []opened) bool {
	given := slices.Clone(list)
	stepless := 0
	for _, o := range list {
		if o.snapshot.Mark.Step == snapshot.NoStep {
			stepless++
		}
	}
	switch {
	case stepless == len(list):
		if !byTicks(list) && !byClock(list) && list[0].anew {
			slices.SortFunc(list, compareEpochs)
		}
	case stepless == 0:
		slices.SortStableFunc(list, compareSteps)
		for i := 1; i < len(list); i++ {
			if list[i].snapshot.Mark.Step == list[i-1].snapshot.Mark.Step {
				copy(list, given)
				return false
			}
		}
	}
	return !slices.Equal(list, given)
}

func (o Opener) openInto(path string, into shared) (*snapshot.Snapshot, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if f.format == nil {
		return nil, f.unknown()
	}
	return o.decode(path, f, into)
}
