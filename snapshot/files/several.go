package files

import (
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
)

// OpenSnapshots reads files as a run's snapshots, in the order given, whatever
// their ranks. Steps come from the snapshots or from the names, as OpenRun takes
// them. All share one table of stacks; one that cannot be read is an error.
func OpenSnapshots(paths ...string) (*snapshot.Run, error) { return Opener{}.OpenSnapshots(paths...) }

// OpenSnapshots is the function of that name with the opener's bounds.
func (o Opener) OpenSnapshots(paths ...string) (*snapshot.Run, error) {
	run := &snapshot.Run{Files: paths}
	into, names := newShared(o.MaxUnpacked), newNamePatterns()
	var list []opened
	for i, path := range paths {
		o.reading(path, i+1, len(paths))
		s, err := o.openInto(path, into)
		if err != nil {
			return nil, err
		}
		step, rank := names.read(filepath.ToSlash(path))
		if s.Rank == snapshot.NoRank {
			s.Rank = rank
		}
		list = append(list, opened{s, path, step})
		run.Snapshots = append(run.Snapshots, s)
	}
	if note := setSteps(list); note != "" {
		run.Notes = append(run.Notes, note)
	}
	return run, nil
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
