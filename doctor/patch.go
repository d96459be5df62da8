package doctor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Patch is a change of the program's source that ends its leaks.
type Patch struct {
	Files   []source.File // files with their new text
	Diff    string        // unified diff of all files
	Leaks   []LeakPatch   // one for each leak, in order
	Apart   string        // why they cannot be applied one after the other, a sentence; "" if they can
	Says    []string      // what it does, a clause each
	Refused []string      // why a leak has no patch, a clause each
	Failed  *Run          // the run with a patch that was withdrawn; nil for none
}

// withdraw removes the patch of a leak with which the program failed, because it needs what the patch removes.
func (p *Patch) withdraw(failed *Run, why string) {
	refused := append(slices.Clone(p.Refused), fmt.Sprintf("%s: %s", p.Leaks[0].Says, strings.Replace(why, "with the change", "with that", 1)))
	*p = Patch{Says: []string{}, Refused: refused, Failed: failed}
}

// Fix is a permanent change of the program, compared with the program before.
type Fix struct {
	Run      *Run
	Verified *baseline.Verification // nil if it could not be judged; Why says why
	Why      string
	Prints   bool // whether it is known to print the same
	Differs  bool // whether it is known to print something else
}

// MakePatch writes a patch for the leaks that were found, without changing a file. Files below folder, where the user works, get names
// relative to it.
func (f *Findings) MakePatch(ctx context.Context, python source.Python, folder string) error {
	f.Patch = &Patch{Says: []string{}}
	texts, leaks := f.sources()
	if len(leaks) == 0 {
		f.Patch.Refused = append(f.Patch.Refused, "nothing with a name holds what leaks")
		return nil
	}
	var files []source.File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		files = append(files, *texts[name])
	}
	patched, err := python.Patch(ctx, files, leaks)
	if err != nil {
		f.Patch.Refused = append(f.Patch.Refused, err.Error())
		return ctx.Err()
	}
	for _, l := range leaks {
		if says := patched.Done[l.ID]; says != "" && !slices.Contains(f.Patch.Says, says) {
			f.Patch.Says = append(f.Patch.Says, says)
		} else if why := patched.Refused[l.ID]; why != "" && !slices.Contains(f.Patch.Refused, why) {
			f.Patch.Refused = append(f.Patch.Refused, why)
		}
	}
	f.Patch.Files = patched.Files
	diffOf := func(files []source.File) string { return unifiedDiff(texts, files, folder) }
	f.Patch.Diff = diffOf(patched.Files)
	of := make(map[int]string)
	for i, l := range f.leaks() {
		of[i] = l.text()
	}
	return f.Patch.apart(ctx, python, files, leaks, of, diffOf)
}

// mostLeaks is how many leaks of a program get a patch at most.
const mostLeaks = 16

// sources returns the files in which patches are sought, and the leaks to fix. The results of trials belong to the first leak.
func (f *Findings) sources() (texts map[string]*source.File, leaks []source.Leak) {
	texts = make(map[string]*source.File)
	read := func(name string) bool {
		if _, library := frame.Installed(name); texts[name] == nil && !library && len(texts) < source.MaxFiles && filepath.IsAbs(name) {
			if file, err := source.ReadPython(name); err == nil {
				texts[name] = file
			}
		}
		return texts[name] != nil
	}
	own := slices.Sorted(maps.Keys(f.Plain.Result.Run().Info.Code.Files))
	for i, l := range f.leaks() {
		h := l.holder()
		if h == nil || i == mostLeaks {
			continue
		}
		leak := source.Leak{ID: i, Path: h.Path, Kind: h.Kind, Files: []string{}, Frames: []source.Frame{}}
		if c := l.cause(); c != nil {
			leak.Cause = c.ID
		}
		if len(f.Tried) > 0 && i == 0 {
			t := f.Tried[0]
			leak.Trial, leak.Proven, leak.Needed = string(t.Kind), t.Verdict == Proven && t.Safe, slices.ContainsFunc(f.Tried, func(t Tried) bool { return t.Verdict == Needed })
			if t.Run.Intervened != nil {
				leak.Kept = t.Run.Intervened.Kept
			}
		}
		if l.Finding != nil {
			for _, at := range l.Finding.Rows[0].Frames {
				leak.Frames = append(leak.Frames, source.Frame{File: at.File, Function: at.Function, Line: at.Line})
				if read(at.File) && !slices.Contains(leak.Files, at.File) {
					leak.Files = append(leak.Files, at.File)
				}
			}
		}
		for _, name := range own {
			if read(name) && !slices.Contains(leak.Files, name) {
				leak.Files = append(leak.Files, name)
			}
		}
		leaks = append(leaks, leak)
	}
	return texts, leaks
}

// leaks are the examined leak and the others, including those in other processes.
func (f *Findings) leaks() []*Leak {
	all := []*Leak{f.Leak}
	beside := leaksOf(f.Plain.Result)
	for _, c := range f.Plain.Result.Children {
		beside = append(beside, leaksOf(c.Result)...)
	}
	for _, l := range beside {
		if l.Finding != f.Leak.Finding {
			all = append(all, l)
		}
	}
	return all
}

// leaksOf are the leaks of a process, except growth of its own pages.
func leaksOf(r *diff.Result) (all []*Leak) {
	for i := range r.Findings {
		if l := &r.Findings[i]; l.Verdict == diff.Leak && !l.OfProcess() {
			all = append(all, &Leak{Finding: l})
		}
	}
	return all
}

// Fixed compares a run of a changed program with the program before. again is a second run of the program before; nil if there is none.
func Fixed(plain, fixed, again *Run) *Fix {
	fix := &Fix{Run: fixed}
	switch {
	case fixed.ended(plain) != "":
		fix.Why = "it ends with another code: " + cmp.Or(fixed.Said, "it says nothing")
	case fixed.Result == nil:
		fix.Why = fixed.Why
	default:
		fix.Verified = baseline.Verify(plain.Result, fixed.Result)
		steady := again == nil || again.Output == plain.Output
		fix.Prints = plain.Output.Bytes > 0 && plain.Output == fixed.Output
		fix.Differs = again != nil && plain.Died == "" && steady && plain.Output != fixed.Output
	}
	return fix
}

// Good reports whether the leaks are gone, and losses and output are not known to differ.
func (x *Fix) Good() bool {
	return x.Verified != nil && x.Verified.Overall() == baseline.Gone && !x.Verified.Effects.Losses.Differs && !x.Differs
}

// Verdict says whether the program still leaks.
func (x *Fix) Verdict() diff.Verdict {
	switch {
	case x == nil || x.Verified == nil:
		return diff.Inconclusive
	case x.Verified.Overall() == baseline.Gone:
		return diff.Clean
	case x.Verified.Overall() == baseline.Remains:
		return diff.Leak
	}
	return diff.Inconclusive
}

// lines are the lines about a fix, the answer first.
func (x *Fix) lines() []string {
	if x.Verified == nil {
		return []string{string(baseline.CannotTell) + ": " + x.Why}
	}
	var b bytes.Buffer
	_, _ = report.Verify(&b, []report.Verified{{Rank: 0, Verification: x.Verified}}) // a buffer takes all
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	switch {
	case x.Differs:
		lines = append(lines, "what it prints: not the same")
	case x.Prints:
		lines = append(lines, "what it prints: the same")
	}
	return lines
}
