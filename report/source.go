package report

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Source is a source file, for the live memory of each of its lines.
type Source struct {
	Path  string // as the user wrote it
	File  string // as in the snapshot's stacks
	Lines []string
	// Changed: the file was modified after the snapshot was taken.
	Changed bool
}

// around is how many lines are shown before and after one that holds memory.
const around = 2

// RecordedAs finds the name of a source file in a snapshot's stacks: this path, else one that ends with it or that it ends with, the
// longest first, else the only one with its base name. If several fit equally well, they are returned as others.
func RecordedAs(s *snapshot.Snapshot, source string) (file string, others []string) {
	source = path.Clean(filepath.ToSlash(source))
	alike := make(map[string]int) // how many characters agree at the end, as a path
	for _, site := range s.Sites() {
		for _, id := range s.Stacks.FrameIDs(site.Stack) {
			f := s.Stacks.FrameAt(id).File
			if _, known := alike[f]; known || !strings.HasSuffix(f, path.Base(source)) {
				continue
			}
			switch recorded := path.Clean(filepath.ToSlash(f)); {
			case recorded == source:
				return f, nil
			case endsAs(recorded, source) || endsAs(source, recorded):
				alike[f] = min(len(recorded), len(source))
			case path.Base(recorded) == path.Base(source):
				alike[f] = 0
			}
		}
	}
	best := -1
	for _, f := range slices.Sorted(maps.Keys(alike)) {
		switch n := alike[f]; {
		case n > best:
			best, others = n, []string{f}
		case n == best:
			others = append(others, f)
		}
	}
	if len(others) == 1 {
		return others[0], nil
	}
	return "", others
}

// endsAs reports whether a path ends with all of another, and has more before it.
func endsAs(whole, end string) bool {
	return strings.HasSuffix(whole, "/"+strings.TrimPrefix(end, "/"))
}

// linesOf is the live memory of each line of a file. A stack with several calls in the file counts for the innermost.
func linesOf(s *snapshot.Snapshot, file string) map[int]diff.Tally {
	lines := make(map[int]diff.Tally)
	for _, site := range s.Sites() {
		frames := s.Stacks.Frames(site.Stack)
		if i := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return f.File == file && f.Line > 0 }); i >= 0 {
			lines[frames[i].Line] = plus(lines[frames[i].Line], diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested})
		}
	}
	return lines
}

// source writes the lines of a file that hold live memory, with the lines around them.
func (p *page) source(s *snapshot.Snapshot, live diff.Tally, source *Source) {
	lines := linesOf(s, source.File)
	var all, beyond diff.Tally
	for line, t := range lines {
		all = plus(all, t)
		if line > len(source.Lines) {
			beyond = plus(beyond, t)
		}
	}
	p.line(p.paint.bold("Live memory by line of " + brief(source.Path)))
	p.prose("  ", "  ", fmt.Sprintf("%s of %s live; a call of another file counts for the line that leads to it", glue(all.Bytes.String()), glue(live.Bytes.String())))
	uncounted := s.Blocks.Uncounted()
	var rows [][]string
	last := 0
	for n, text := range source.Lines {
		n++
		if !near(lines, n) {
			continue
		}
		if n > last+1 && last > 0 {
			rows = append(rows, []string{"", "", "", "", "…"})
		}
		last = n
		row := []string{"", "", "", strconv.Itoa(n), brief(strings.ReplaceAll(text, "\t", "    "))}
		if t, ok := lines[n]; ok {
			row[0], row[1], row[2] = heldBlocks(t.Blocks, uncounted), t.Bytes.String(), share(t.Bytes, live.Bytes)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		p.table([]column{{"blocks", true}, {"bytes", true}, {"share", true}, {"line", true}, {"", false}}, rows)
	}
	switch {
	case beyond.Bytes > 0:
		p.prose("  ", "  ", fmt.Sprintf("%s are of lines after the file's end: it was changed after the recording.", glue(beyond.Bytes.String())))
	case source.Changed:
		p.prose("  ", "  ", "The file was changed after the recording: its lines may have moved.")
	}
}

func near(lines map[int]diff.Tally, n int) bool {
	for i := n - around; i <= n+around; i++ {
		if _, ok := lines[i]; ok {
			return true
		}
	}
	return false
}

// lineJSON is the live memory of a line of a source file.
type lineJSON struct {
	Line int    `json:"line"`
	Text string `json:"text,omitempty"`
	tallyJSON
}

type sourceJSON struct {
	File    string     `json:"file"` // as the stacks name it
	Changed bool       `json:"changed_after_recording"`
	Lines   []lineJSON `json:"lines"`
}

func sourceJSONOf(s *snapshot.Snapshot, o TextOptions) *sourceJSON {
	if o.Source == nil {
		return nil
	}
	lines, uncounted := linesOf(s, o.Source.File), s.Blocks.Uncounted()
	out := &sourceJSON{File: o.Source.File, Changed: o.Source.Changed, Lines: []lineJSON{}}
	for _, n := range slices.Sorted(maps.Keys(lines)) {
		line := lineJSON{Line: n, tallyJSON: tallyOf(lines[n], uncounted)}
		if n <= len(o.Source.Lines) {
			line.Text = o.Source.Lines[n-1]
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}
