package corpus

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Change is a recorded run that memdiag judges otherwise without a part of its judge.
type Change struct{ Part, Run, With, Without string }

// Recorded judges the recorded runs in the folders of dir, as bench/field/score.py keeps them, with and without parts of memdiag's
// judge. It returns what changes, by part and then by run, and how many runs there are. Runs without a snapshot that can be read are left out.
func Recorded(ctx context.Context, dir string, without []string, progress func(done, all int)) (changes []Change, runs int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	byPart := make(map[string][]Change)
	for i, entry := range entries {
		progress(i, len(entries))
		path := filepath.Join(dir, entry.Name())
		if _, err := os.Stat(filepath.Join(path, rundir.InfoName)); err != nil {
			continue
		}
		run, err := files.OpenRun(path)
		if err != nil {
			continue
		}
		runs++
		with := said(run)
		for _, part := range without {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			if now := said(run, part); now != with {
				byPart[part] = append(byPart[part], Change{part, entry.Name(), with, now})
			}
		}
	}
	if runs == 0 {
		return nil, 0, &files.InputError{Reason: dir + ": no recorded runs"}
	}
	for _, part := range without {
		changes = append(changes, byPart[part]...)
	}
	return changes, runs, nil
}

// said is what memdiag says of a run: its verdict, and the line, holder and cause of the first finding that may leak.
func said(run *snapshot.Run, without ...string) string {
	options := diff.DefaultOptions()
	options.Without = without
	result, err := options.Analyze(run)
	if err != nil {
		return "too short"
	}
	verdict := "no leak"
	switch {
	case result.Leaks() > 0:
		verdict = fmt.Sprintf("leaks: %d,", result.Leaks())
	case result.Count(diff.Inconclusive) > 0 || len(result.Unaccounted()) > 0:
		verdict = "undecided"
	}
	for i := range result.Findings {
		f := &result.Findings[i]
		if f.Verdict != diff.Leak && f.Verdict != diff.Inconclusive {
			continue
		}
		if f.Headline >= 0 {
			at := f.Rows[0].Frames[f.Headline]
			verdict += fmt.Sprintf(" at %s:%d", filepath.Base(at.File), at.Line)
		}
		if f.Holder != nil {
			verdict += " held by " + f.Holder.Path
		}
		if f.Cause != nil {
			verdict += ", " + f.Cause.ID
		}
		break
	}
	return verdict
}

// RecordedText writes what changes.
func RecordedText(w io.Writer, without []string, changes []Change, runs int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "recorded runs: %d\n", runs)
	last := ""
	changed := make(map[string]bool)
	for _, c := range changes {
		if c.Part != last {
			fmt.Fprintf(&b, "\nwithout %s (%s)\n", c.Part, about(c.Part))
		}
		last, changed[c.Part] = c.Part, true
		fmt.Fprintf(&b, "  %s: %s\n    with it: %s\n", c.Run, c.Without, c.With)
	}
	same := slices.DeleteFunc(slices.Clone(without), func(part string) bool { return changed[part] })
	if len(same) > 0 {
		fmt.Fprintf(&b, "\nnothing changes without: %s\n", strings.Join(same, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
