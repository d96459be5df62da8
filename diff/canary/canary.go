// Package canary separates the leak that a gate plants, to check that it catches leaks, from the program's own
// memory.
package canary

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Key is the parameter (Info.Parameters) of a run with a planted canary; its value is then "true".
const Key = "canary"

// planters are memdiag's files that plant canaries: in its own engine, and in Python.
var planters = [...]string{"cmd/memdiag/gate_canary.go", "/memdiag/_canary.py"}

// In reports whether a canary was planted in a run.
func In(run *snapshot.Run) bool { return run.Info.Parameters[Key] == "true" }

// fromOutside is the producer of snapshots of a process that memdiag watched from outside, as in package record.
const fromOutside = "memdiag record"

// Possible reports whether a canary can be planted in the run's process: memdiag recorded inside of it.
func Possible(run *snapshot.Run) bool {
	return slices.ContainsFunc(run.Snapshots, func(s *snapshot.Snapshot) bool { return s.Producer != fromOutside })
}

func planted(frames []snapshot.Frame) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool {
		return slices.ContainsFunc(planters[:], func(file string) bool { return strings.HasSuffix(frame.Slashed(f.File), file) })
	})
}

// Found returns the canary's finding, and whether it is a leak; nil if there is none.
func Found(r *diff.Result) (f *diff.Finding, caught bool) {
	for i := range r.Findings {
		f := &r.Findings[i] // leaks come first
		if slices.ContainsFunc(f.Rows, func(row *diff.Row) bool { return planted(row.Frames) }) {
			return f, f.Verdict == diff.Leak
		}
	}
	return nil, false
}

// Without returns the run as it would be without its canary: without the canary's live blocks, and with meters that
// do not count them. The run itself is not changed; a run without a canary is returned as it is.
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

// stacks reports for each stack of a table whether it is a canary's.
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

// fromSeries assumes that sites took exactly the bytes that were requested, since a series does not record both.
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
