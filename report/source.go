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

// Source is a program's file, for the live memory of each of its lines.
type Source struct {
	Path  string // as the user names it
	File  string // as the snapshot's stacks do
	Lines []string
	// Changed: the file was written after the snapshot was taken.
	Changed bool
}

// around is how many lines are shown before and after one that holds memory.
const around = 2

// RecordedAs finds the file by which a snapshot's stacks name a source file: the one that ends as its path does, or else the only one of its
// base name. Several of that name are returned as others.
func RecordedAs(s *snapshot.Snapshot, source string) (file string, others []string) {
	source = path.Clean(filepath.ToSlash(source))
	ending, named := make(map[string]bool), make(map[string]bool)
	for _, site := range s.Sites() {
		for _, f := range s.Stacks.Frames(site.Stack) {
			switch recorded := path.Clean(filepath.ToSlash(f.File)); {
			case path.Base(recorded) != path.Base(source):
			case endsAs(recorded, source) || endsAs(source, recorded):
				ending[f.File] = true
				fallthrough
			default:
				named[f.File] = true
			}
		}
	}
	for _, files := range []map[string]bool{ending, named} {
		if len(files) > 0 {
			others = slices.Sorted(maps.Keys(files))
			break
		}
	}
	if len(others) == 1 {
		return others[0], nil
	}
	return "", others
}

// endsAs reports whether a path ends with all of another.
func endsAs(whole, end string) bool { return whole == end || strings.HasSuffix(whole, "/"+end) }

// linesOf is the live memory of each line of a file: of a stack's calls in it, the innermost.
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

// source writes the lines of a file that hold live memory, with those around them.
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
	File  string     `json:"file"` // as the stacks name it
	Lines []lineJSON `json:"lines"`
}

func sourceJSONOf(s *snapshot.Snapshot, o TextOptions) *sourceJSON {
	if o.Source == nil {
		return nil
	}
	lines, uncounted := linesOf(s, o.Source.File), s.Blocks.Uncounted()
	out := &sourceJSON{File: o.Source.File, Lines: []lineJSON{}}
	for _, n := range slices.Sorted(maps.Keys(lines)) {
		line := lineJSON{Line: n, tallyJSON: tallyOf(lines[n], uncounted)}
		if n <= len(o.Source.Lines) {
			line.Text = o.Source.Lines[n-1]
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}
