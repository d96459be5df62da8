package doctor

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Measured is what a run shows about a place that looks like a cause.
type Measured string

// What it shows.
const (
	Grows  Measured = "suspicious and grows"
	Quiet  Measured = "suspicious and quiet"
	Unseen Measured = "suspicious, not seen to run"
)

// Suspect is a place in the program's source that looks like a cause, with what was measured there.
type Suspect struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Says     string   `json:"says"`
	Cause    string   `json:"cause"`
	Measured Measured `json:"measured"`
	Growth   string   `json:"growth,omitempty"` // rate and line of what grows
}

// Linted is the result of lint for a run's program.
type Linted struct {
	SchemaVersion int       `json:"schema_version"`
	Files         int       `json:"files"` // number of files that were read
	Suspects      []Suspect `json:"suspects"`
	Skipped       []string  `json:"skipped,omitempty"` // files that were not read, and why
}

// Lint reads the program's own files, from recorded stacks or seen by the recorder, and combines suspicious places with what the run
// shows. Places that grow come first. A file is skipped if may, unless nil, returns an error for it.
func Lint(ctx context.Context, r *diff.Result, python source.Python, may func(name string) error) (*Linted, error) {
	out := &Linted{SchemaVersion: 1, Suspects: []Suspect{}}
	var files []source.File
	for _, name := range ownFiles(r) {
		if may != nil {
			if err := may(name); err != nil {
				out.Skipped = append(out.Skipped, err.Error())
				continue
			}
		}
		file, err := source.ReadPython(name)
		switch {
		case err != nil:
			out.Skipped = append(out.Skipped, err.Error())
			continue
		case len(files) == source.MaxFiles:
			out.Skipped = append(out.Skipped, fmt.Sprintf("%s: %d files were read", name, len(files)))
			continue
		}
		if since := sinceRecorded(&r.Run().Info, file); since != "" {
			out.Skipped = append(out.Skipped, fmt.Sprintf("%s: it %s, so lines may differ", name, since))
		}
		files = append(files, *file)
	}
	out.Files = len(files)
	if len(files) == 0 {
		return out, nil
	}
	linted, err := python.Lint(ctx, files)
	if err != nil {
		return nil, err
	}
	for _, l := range linted {
		if l.Failed != "" {
			out.Skipped = append(out.Skipped, l.Name+": "+l.Failed)
		}
		for _, s := range l.Found {
			one := Suspect{File: l.Name, Line: s.Line, Says: s.Says, Cause: s.Cause}
			one.Measured, one.Growth = measured(r, l.Name, s)
			out.Suspects = append(out.Suspects, one)
		}
	}
	order := []Measured{Grows, Quiet, Unseen}
	slices.SortStableFunc(out.Suspects, func(a, b Suspect) int {
		return cmp.Compare(slices.Index(order, a.Measured), slices.Index(order, b.Measured))
	})
	return out, nil
}

// sinceRecorded says how a file differs from the one in the run, a clause; "" if it does not, as far as known. A file that was only
// copied or checked out again has another time, but the same text.
func sinceRecorded(info *snapshot.Info, file *source.File) string {
	if was, ok := info.Code.Contents[file.Name]; ok {
		if was != snapshot.Content(file.Text) {
			return "was changed since the recording"
		}
		return ""
	}
	if on, err := os.Stat(file.Name); err == nil && !info.Started.IsZero() && on.ModTime().After(info.Started) {
		return "is newer than the run"
	}
	return ""
}

// ownFiles lists the program's own files, by name.
func ownFiles(r *diff.Result) []string {
	names := make(map[string]bool)
	add := func(name string) {
		if _, library := frame.Installed(name); !library && filepath.IsAbs(name) && filepath.Ext(name) == ".py" {
			names[name] = true
		}
	}
	for name := range r.Run().Info.Code.Files {
		add(name)
	}
	for f := range findings(r) {
		own := frame.Own(f.Rows[0].Frames)
		for _, at := range f.Rows[0].Frames {
			if own(at) {
				add(at.File)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// findings iterates over the findings of a run and of its other processes.
func findings(r *diff.Result) iter.Seq[*diff.Finding] {
	return func(yield func(*diff.Finding) bool) {
		for i := range r.Findings {
			if !yield(&r.Findings[i]) {
				return
			}
		}
		for _, c := range r.Children {
			for i := range c.Result.Findings {
				if !yield(&c.Result.Findings[i]) {
					return
				}
			}
		}
	}
}

// measured is what the run shows about a place: growth at its lines, or growth of something with its name that is held there.
func measured(r *diff.Result, file string, s source.Suspect) (Measured, string) {
	seen := false
	for f := range findings(r) {
		for _, at := range f.Rows[0].Frames {
			here := at.File == file && s.Line <= at.Line && at.Line <= s.End
			held := s.Name != "" && f.Holder != nil && HolderName(f.Holder.Path) == s.Name && at.File == file
			seen = seen || here
			if f.Verdict == diff.Leak && (here || held) {
				return Grows, report.GrowthText(f)
			}
		}
	}
	for _, function := range r.Run().Info.Code.Functions(file) {
		for line := range function.Ran {
			seen = seen || s.Line <= function.First+line && function.First+line <= s.End
		}
	}
	if seen {
		return Quiet, ""
	}
	return Unseen, ""
}
