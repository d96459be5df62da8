package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// slice is the part of a run that a gate judges. The zero value is all of it.
type slice struct {
	warmup        int64
	phase, device string
}

// of returns the marks that are asked for; run itself is not changed.
func (s slice) of(run *snapshot.Run) (*snapshot.Run, error) {
	if s.warmup == 0 && s.phase == "" {
		return run, nil
	}
	var phases []string
	keep := func(m snapshot.Mark) bool {
		if m.Phase != "" && !slices.Contains(phases, m.Phase) {
			phases = append(phases, m.Phase)
		}
		return (s.phase == "" || m.Phase == s.phase) && (s.warmup == 0 || m.Step >= s.warmup)
	}
	part := *run
	part.Snapshots = nil
	for _, at := range run.Snapshots {
		if s.warmup > 0 && at.Mark.Step == snapshot.NoStep {
			return nil, &exitError{exitUsage, withHint(errors.New("--warmup: the run has no steps"), "name only the later snapshots")}
		}
		if keep(at.Mark) {
			part.Snapshots = append(part.Snapshots, at)
		}
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
	if s.phase != "" && !slices.Contains(phases, s.phase) {
		err := fmt.Errorf("--phase: the run has no phase %q", s.phase)
		if len(phases) == 0 {
			return nil, &exitError{exitUsage, withHint(err, "the run has no phases; a program marks them with memdiag.mark(phase=…)")}
		}
		return nil, &exitError{exitUsage, withHint(err, "there are %s", strings.Join(phases, ", "))}
	}
	return &part, nil
}

// unseen is the memory within the slice that was not recorded.
func (s slice) unseen(run *snapshot.Run) []snapshot.Unseen {
	kind, _, _ := strings.Cut(s.device, ":")
	return slices.DeleteFunc(slices.Clone(run.Info.Unseen), func(u snapshot.Unseen) bool {
		return kind != "" && u.Device != "" && string(u.Device) != kind
	})
}

// keepDevice takes from a result what was found on other devices.
func (s slice) keepDevice(r *diff.Result) error {
	if s.device == "" {
		return nil
	}
	// The last snapshot may hold nothing, and then some files name no device.
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
		return &exitError{exitUsage, withHint(fmt.Errorf("--device: the run has no device %q", s.device), "there are %s", strings.Join(names, ", "))}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f diff.Finding) bool { return !s.has(f.Rows[0].Device) })
	// A clone, since findings point into the rows as they are.
	r.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row diff.Row) bool { return !s.has(row.Device) })
	return nil
}

// has is true for a device that is judged.
func (s slice) has(d snapshot.Device) bool {
	return s.device == "" || s.device == string(d.Kind) || s.device == fmt.Sprintf("%s:%d", d.Kind, d.Index)
}

// rateFlag is a flag that takes growth, such as 4KiB/step; it has no unit where it is not
// set.
type rateFlag diff.Growth

func (f *rateFlag) String() string {
	if f.Unit == "" {
		return ""
	}
	return diff.Growth(*f).String()
}

// Type is what help shows for the value.
func (f *rateFlag) Type() string { return "rate" }

// Set parses a size with its unit, a step where none is given.
func (f *rateFlag) Set(text string) error {
	if !strings.Contains(text, "/") {
		text += "/step"
	}
	g, err := series.ParseGrowth(text)
	if err == nil {
		*f = rateFlag(g)
	}
	return err
}
