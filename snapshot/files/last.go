package files

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// OpenLast reads the last snapshot of the run in a folder, in the order of OpenRun, of the lowest rank. If the names give the order, no
// other file is read and path is the file's; else path is "".
func (o Opener) OpenLast(dir string) (s *snapshot.Snapshot, path string, err error) {
	if name := lastByName(dir); name != "" {
		path = filepath.Join(dir, name)
		s, err = o.Open(path)
		return s, path, err
	}
	run, err := o.OpenRank(dir, snapshot.NoRank)
	if err != nil {
		return nil, "", err
	}
	if len(run.Snapshots) == 0 {
		return nil, "", notThere(dir+": no snapshots", "memdiag record -- COMMAND makes a run")
	}
	return run.Snapshots[len(run.Snapshots)-1], "", nil
}

// OpenOutOfMemory reads the last snapshot of the run in a folder, of any rank, that recorded a failed request for memory, at the moment
// of the failure.
func (o Opener) OpenOutOfMemory(dir string) (s *snapshot.Snapshot, path string, err error) {
	o.At = snapshot.At{Kind: snapshot.AtOOM}
	names := snapshotsIn(dir).names
	for i, name := range slices.Backward(names) {
		path = filepath.Join(dir, name)
		o.reading(path, len(names)-i, len(names))
		if s, err := o.Open(path); err == nil && s.Moment.Refused != nil {
			return s, path, nil
		}
	}
	return nil, "", notThere(dir+": no request for memory failed in the records of its snapshots", "memdiag show shows its last snapshot")
}

// lastByName is the snapshot with the highest epoch and step among those of the lowest rank in a folder, or the one with the highest
// number in a run of ours without steps; "" if the names do not show it.
func lastByName(dir string) string {
	patterns, steps := newNamePatterns(), 0
	var list []string
	lowest := math.MaxInt
	for _, name := range snapshotsIn(dir).names { // by number
		step, rank := patterns.read(name)
		if rank < lowest {
			list, steps, lowest = nil, 0, rank
		}
		if rank > lowest {
			continue
		}
		list = append(list, name)
		if step != snapshot.NoStep {
			steps++
		}
	}
	switch {
	case len(list) == 0:
	case steps == len(list):
		return slices.MaxFunc(list, func(a, b string) int {
			x, _ := patterns.read(a)
			y, _ := patterns.read(b)
			return cmp.Or(cmp.Compare(patterns.epochOf(a), patterns.epochOf(b)), cmp.Compare(x, y))
		})
	case steps == 0 && numbered(list) && isRegular(filepath.Join(dir, rundir.InfoName)):
		return list[len(list)-1]
	}
	return ""
}
