package report

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Folder lists the paths of the folder that a reader works in (links may give it several). Files below it are shown with relative
// paths. If it is nil, paths are shown as recorded.
type Folder []string

// Results shortens the file names in judged results: those below the folder become relative, and those of installed packages begin at
// "site-packages/". Use it for text and pictures. Files for programs keep the recorded paths.
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

// finding is a copy of a finding with the names that Results gives.
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

// Snapshot is Results for a snapshot, and for all snapshots that share its table of stacks.
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

// file is the shown path of a frame's file. It is the full path if the short one would change whether the frame counts as the user's
// own code.
func (d Folder) file(f snapshot.Frame) string {
	short := f
	short.File = d.path(f.File)
	if short == f || owns(short) != owns(f) {
		return f.File
	}
	return short.File
}

func owns(f snapshot.Frame) bool { return frame.Own([]snapshot.Frame{f})(f) }

// path shortens a path: relative to the folder if it is below it, and from the folder of installed packages on if it is in one.
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

// relative is a path with slashes, relative to the folder if it is below it.
func (d Folder) relative(file string) string {
	slashed := frame.Slashed(file)
	for _, root := range d.roots() {
		if below, ok := strings.CutPrefix(slashed, root); ok {
			return below
		}
	}
	return file
}

// roots lists the folder's paths, each with a final slash; never the file system's root.
func (d Folder) roots() (out []string) {
	for _, root := range d {
		if root = strings.TrimSuffix(frame.Slashed(root), "/"); root != "" {
			out = append(out, root+"/")
		}
	}
	return out
}

// Text makes the paths in a text relative to the folder if they are below it.
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
				b.WriteString(root) // root is the end of a longer path
			}
			rest = rest[at+len(root):]
		}
		text = b.String()
	}
	return text
}
