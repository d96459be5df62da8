// Package canary tells what a gate plants, to see that it catches a leak, from what
// the program itself holds.
package canary

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Key is the parameter of a run (Info.Parameters) in which a canary was planted; its
// value is then "true".
const Key = "canary"

// planters are the files of memdiag's that plant: in its own engine, and in Python.
var planters = [...]string{"cmd/memdiag/gate_canary.go", "/memdiag/_canary.py"}

// In is true for a run in which a canary was planted.
func In(run *snapshot.Run) bool { return run.Info.Parameters[Key] == "true" }

// fromOutside is who wrote a snapshot of a process that memdiag did not look into, as
// package record says it.
const fromOutside = "memdiag record"

// Possible is true for a run of a process in which a canary can be planted: one that
// memdiag looked into.
func Possible(run *snapshot.Run) bool {
	return slices.ContainsFunc(run.Snapshots, func(s *snapshot.Snapshot) bool { return s.Producer != fromOutside })
}

func planted(frames []snapshot.Frame) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool {
		return slices.ContainsFunc(planters[:], func(file string) bool { return strings.HasSuffix(frame.Slashed(f.File), file) })
	})
}

// Found is what was found of the canary, and whether as a leak; nil where nothing was.
func Found(r *diff.Result) (f *diff.Finding, caught bool) {
	for i := range r.Findings {
		f := &r.Findings[i] // leaks come first
		if slices.ContainsFunc(f.Rows, func(row *diff.Row) bool { return planted(row.Frames) }) {
			return f, f.Verdict == diff.Leak
		}
	}
	return nil, false
}

// Without is the run as it would be without its canary: no live block of it, and
// meters that do not count it. The run itself is not changed; one without a canary is
// returned as it is.
func Without(run *snapshot.Run) *snapshot.Run {
	if !In(run) {
		return run
	}
	part := *run
	part.Snapshots = make([]*snapshot.Snapshot, len(run.Snapshots))
	for i, s := range run.Snapshots {
		part.Snapshots[i] = fromSnapshot(s)
	}
	if run.Series != nil {
		part.Series = fromSeries(run.Series)
	}
	return &part
}

// stacks tells which of a table plant.
func stacks(table *snapshot.Stacks) []bool {
	is := make([]bool, table.Len())
	for id := range is {
		is[id] = planted(table.Frames(snapshot.StackID(id)))
	}
	return is
}

func fromSnapshot(s *snapshot.Snapshot) *snapshot.Snapshot {
	is := stacks(s.Stacks)
	part := *s
	part.Devices, part.Blocks.State = slices.Clone(s.Devices), slices.Clone(s.Blocks.State)
	for row, stack := range s.Blocks.Stack {
		if is[stack] && s.Blocks.State[row] == snapshot.Live {
			part.Blocks.State[row] = snapshot.Free
			less(&part.Devices[s.Segments[s.Blocks.Segment[row]].Device].Meters, s.Blocks.Requested[row], s.Blocks.Size[row])
		}
	}
	return &part
}

// fromSeries takes sites as allocated for what was requested of them, which a series
// does not tell.
func fromSeries(s *snapshot.Series) *snapshot.Series {
	is := stacks(s.Stacks)
	part := *s
	part.Points = slices.Clone(s.Points)
	for i := range part.Points {
		p := &part.Points[i]
		p.Meters = slices.Clone(p.Meters)
		p.Sites = slices.DeleteFunc(slices.Clone(p.Sites), func(c snapshot.SiteCount) bool {
			site := s.Sites[c.Site]
			if is[site.Stack] {
				less(&p.Meters[site.Device], c.Bytes, c.Bytes)
			}
			return is[site.Stack]
		})
	}
	return &part
}

func less(m *snapshot.Meters, requested, size snapshot.Bytes) {
	m.Requested -= requested
	m.Allocated -= size
	m.Active -= size
}
