package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Slice is the part of a run that a gate judges. The zero value is the whole run.
type Slice struct {
	Warmup int64  // steps to leave out
	Phase  string // "" for all
	Device string // "cuda:0", or a kind of device; "" for all
}

// SliceError says that a run lacks what a slice names.
type SliceError struct{ fault, hint string }

func (e *SliceError) Error() string { return e.fault }

// Hint says what the run has.
func (e *SliceError) Hint() string { return e.hint }

// of returns the run with only the snapshots of the slice; run itself is not changed.
func (s Slice) of(run *snapshot.Run) (*snapshot.Run, error) {
	if s.Warmup == 0 && s.Phase == "" {
		return run, nil
	}
	var phases []string
	inPhase := func(m snapshot.Mark) bool {
		if m.Phase != "" && !slices.Contains(phases, m.Phase) {
			phases = append(phases, m.Phase)
		}
		return s.Phase == "" || m.Phase == s.Phase
	}
	keep := func(m snapshot.Mark) bool { return inPhase(m) && (s.Warmup == 0 || m.Step >= s.Warmup) }
	part := *run
	part.Snapshots = nil
	for _, at := range run.Snapshots {
		if s.Warmup > 0 && at.Mark.Step == snapshot.NoStep {
			return nil, &SliceError{"--warmup: the run has no steps", "name only the later snapshots"}
		}
		if keep(at.Mark) {
			part.Snapshots = append(part.Snapshots, at)
		}
	}
	if n := len(part.Snapshots); n > 0 && run.Info.Finished != nil {
		if at := slices.Index(run.Snapshots, part.Snapshots[n-1]); at < len(run.Snapshots)-1 && !run.Snapshots[at+1].Mark.Time.IsZero() {
			part.Info.Finished = &run.Snapshots[at+1].Mark.Time // what comes after the slice does not matter
		}
	}
	part.Children = nil
	for _, child := range run.Children {
		if child.AfterStep > 0 && s.Phase != "" { // the same process, which may have phases after its last step, too
			after, later := child, *child
			later.Snapshots = slices.DeleteFunc(slices.Clone(child.Snapshots), func(at *snapshot.Snapshot) bool { return !inPhase(at.Mark) })
			if child = &later; len(later.Snapshots) == 0 {
				if n, next := len(part.Snapshots), after.Snapshots[0].Mark.Time; n > 0 && part.Snapshots[n-1] == run.Snapshots[len(run.Snapshots)-1] && run.Info.Finished != nil && !next.IsZero() {
					part.Info.Finished = &next
				}
				continue
			}
		}
		part.Children = append(part.Children, child)
	}
	if run.Series != nil {
		series := *run.Series
		series.Points = nil
		for _, p := range run.Series.Points {
			if keep(p.Mark) {
				series.Points = append(series.Points, p)
			}
		}
		part.Series = &series
	}
	if s.Phase != "" && !slices.Contains(phases, s.Phase) {
		hint := "its phases: " + strings.Join(phases, ", ")
		if len(phases) == 0 {
			hint = "the run has no phases; a program marks them with memdiag.mark(phase=…)"
		}
		return nil, &SliceError{fmt.Sprintf("--phase: the run has no phase %q", s.Phase), hint}
	}
	if at := slices.IndexFunc(part.Children, func(c *snapshot.Run) bool { return c.AfterStep > 0 }); at >= 0 && len(part.Snapshots) == 0 {
		part.Snapshots, part.Info.Finished = part.Children[at].Snapshots, run.Info.Finished
		part.Children = slices.Delete(part.Children, at, at+1)
	}
	return &part, nil
}

// unseen is the memory within the slice that was not recorded.
func (s Slice) unseen(run *snapshot.Run) []snapshot.Unseen {
	kind, _, _ := strings.Cut(s.Device, ":")
	return slices.DeleteFunc(slices.Clone(run.Info.Unseen), func(u snapshot.Unseen) bool {
		return kind != "" && u.Device != "" && string(u.Device) != kind
	})
}

// keepDevice removes from a result what was found on other devices.
func (s Slice) keepDevice(r *diff.Result) error {
	if s.Device == "" {
		return nil
	}
	// The last snapshot may be empty, and some files then name no device.
	devices := slices.Concat(r.First.Devices, r.Last.Devices)
	if !slices.ContainsFunc(devices, s.has) {
		var names []string
		for _, d := range devices {
			if name := fmt.Sprintf("%s:%d", d.Kind, d.Index); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if names == nil {
			names = []string{"none"}
		}
		return &SliceError{fmt.Sprintf("--device: the run has no device %q", s.Device), "its devices: " + strings.Join(names, ", ")}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f diff.Finding) bool { return !s.has(f.Rows[0].Device) })
	// A clone, since findings point into the rows as they are.
	r.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row diff.Row) bool { return !s.has(row.Device) })
	return nil
}

// has reports whether a device is judged.
func (s Slice) has(d snapshot.Device) bool {
	return s.Device == "" || s.Device == string(d.Kind) || s.Device == fmt.Sprintf("%s:%d", d.Kind, d.Index)
}
