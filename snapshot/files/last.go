package files

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// OpenLast reads the last readable snapshot of the run in a folder, in the order of OpenRun, of the lowest rank. If the names give the
// order, no earlier file is read and path is the file's; else path is "". The snapshot's notes list later files that cannot be read. If
// there is none, the error is the last file's.
func (o Opener) OpenLast(dir string) (s *snapshot.Snapshot, path string, err error) {
	var unread []string
	var last error
	for _, name := range slices.Backward(orderedByName(dir)) {
		path = filepath.Join(dir, name)
		if s, err = o.Open(path); err == nil {
			s.Notes = append(s.Notes, unread...)
			return s, path, nil
		}
		unread = append(unread, leftOut(err))
		last = cmp.Or(last, err)
	}
	if last != nil {
		return nil, "", last
	}
	run, err := o.OpenRank(dir, snapshot.NoRank)
	if err != nil {
		return nil, "", err
	}
	if len(run.Snapshots) == 0 {
		return nil, "", notThere(dir+": no snapshots", "memdiag record -- COMMAND makes a run")
	}
	s = run.Snapshots[len(run.Snapshots)-1]
	s.Notes = append(s.Notes, run.Unread...)
	return s, "", nil
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

// orderedByName lists the snapshots of the lowest rank in a folder by epoch and step, or by number in a run of ours without steps; nil if
// the names do not show the order. Files that are named alike but have no known format are included.
func orderedByName(dir string) []string {
	patterns, steps := newNamePatterns(), 0
	var list []string
	lowest := math.MaxInt
	in := snapshotsIn(dir)
	for _, name := range in.names { // by number
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
	likeThem := alike(list)
	for _, name := range in.other {
		if step, rank := patterns.read(name); rank == lowest && likeThem(name) {
			list = append(list, name)
			if step != snapshot.NoStep {
				steps++
			}
		}
	}
	slices.SortFunc(list, compareNames)
	switch {
	case steps == len(list):
		slices.SortStableFunc(list, func(a, b string) int {
			x, _ := patterns.read(a)
			y, _ := patterns.read(b)
			return cmp.Or(cmp.Compare(patterns.epochOf(a), patterns.epochOf(b)), cmp.Compare(x, y))
		})
		return list
	case steps == 0 && numbered(list) && isRegular(filepath.Join(dir, rundir.InfoName)):
		return list
	}
	return nil
}
