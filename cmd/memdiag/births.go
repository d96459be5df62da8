package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// runUpTo is the series of the run in a snapshot's folder, up to that snapshot. It bounds births that were not observed, so it is read
// only if the snapshot has some. It is nil if it is not needed or cannot be read.
func (env *environment) runUpTo(s *snapshot.Snapshot, path string) *diff.Series {
	if len(diff.UnseenBirths(s, nil)) == 0 {
		return nil
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(filepath.Join(dir, rundir.InfoName)); err != nil {
		return nil
	}
	run, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(dir, s.Rank) })
	env.talk.clear()
	if err != nil {
		return nil
	}
	before := slices.DeleteFunc(run.Snapshots, func(o *snapshot.Snapshot) bool { return o.Mark.Step > s.Mark.Step })
	if len(before) < 2 {
		return nil
	}
	return series.Collect(&snapshot.Run{Snapshots: before})
}
