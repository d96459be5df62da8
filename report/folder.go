package report

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Folder is the folder that a reader works in, by each of the paths that lead to it: paths of
// files below it are shown relative to it. With none, paths are shown as they were recorded.
type Folder []string

// Results makes what is shown of judged results name files as a person would: those below the
// folder relative to it, and those of installed packages from "site-packages/" on. It is for
// text and pictures; files for programs have the paths that were recorded.
func (d Folder) Results(results ...*diff.Result) {
	for _, r := range results {
		for i := range r.Rows {
			d.frames(r.Rows[i].Frames)
		}
		for i := range r.Findings {
			for _, row := range r.Findings[i].Rows {
				d.frames(row.Frames)
			}
		}
		d.Snapshot(r.First)
		d.Snapshot(r.Last)
		for _, c := range r.Children {
			d.Results(c.Result)
		}
	}
}

// finding is a copy of a finding as Results would make it.
func (d Folder) finding(of *diff.Finding) *diff.Finding {
	f := *of
	f.Rows = make([]*diff.Row, len(of.Rows))
	for i, row := range of.Rows {
		r := *row
		r.Frames = slices.Clone(row.Frames)
		d.frames(r.Frames)
		f.Rows[i] = &r
	}
	return &f
}

// Snapshot is Results for a snapshot, and for all that share its table of stacks.
func (d Folder) Snapshot(s *snapshot.Snapshot) {
	if s.Stacks != nil {
		s.Stacks.RenameFiles(d.file)
	}
}

func (d Folder) frames(frames []snapshot.Frame) {
	for i := range frames {
		frames[i].File = d.file(frames[i])
	}
}

// file is the shown path of a frame's file. Where the short one would tell the user's own code
// from a library's in another way, the whole one stays.
func (d Folder) file(f snapshot.Frame) string {
	short := f
	short.File = d.path(f.File)
	if short == f || owns(short) != owns(f) {
		return f.File
	}
	return short.File
}

func owns(f snapshot.Frame) bool { return frame.Own([]snapshot.Frame{f})(f) }

// path is a path relative to the folder where it lies below it, and from the folder of
// installed packages on where it lies in one.
func (d Folder) path(file string) string {
	if d == nil {
		return file
	}
	file = d.relative(file)
	for _, packages := range []string{"/site-packages/", "/dist-packages/"} {
		if at := strings.LastIndex(frame.Slashed(file), packages); at >= 0 {
			return file[at+1:]
		}
	}
	return file
}

// relative is a path relative to the folder where it lies below it, with slashes.
func (d Folder) relative(file string) string {
	slashed := frame.Slashed(file)
	for _, root := range d.roots() {
		if below, ok := strings.CutPrefix(slashed, root); ok {
			return below
		}
	}
	return file
}

// roots are the folder's paths, each with a slash at its end; never the root of all files.
func (d Folder) roots() (out []string) {
	for _, root := range d {
		if root = strings.TrimSuffix(frame.Slashed(root), "/"); root != "" {
			out = append(out, root+"/")
		}
	}
	return out
}

// Text is a text whose paths below the folder are relative to it.
func (d Folder) Text(text string) string {
	for _, root := range d.roots() {
		root = Printable(root)
		var b strings.Builder
		for rest := text; ; {
			at := strings.Index(rest, root)
			if at < 0 {
				b.WriteString(rest)
				break
			}
			b.WriteString(rest[:at])
			if told := b.String(); told != "" && !strings.ContainsRune(" \n\t(\"'`", rune(told[len(told)-1])) {
				b.WriteString(root) // it ends a longer path
			}
			rest = rest[at+len(root):]
		}
		text = b.String()
	}
	return text
}
