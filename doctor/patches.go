package doctor

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	unified "github.com/rogpeppe/go-internal/diff"

	"github.com/memdiag/memdiag/doctor/source"
)

// LeakPatch is the patch of one leak, or of several that one change fixes.
type LeakPatch struct {
	Of   []string // what grows, and where
	Says string   // what it does, a clause
	Diff string   // unified; it applies alone
}

// apart makes a patch for each leak that the whole patch fixes, and checks whether they apply one after the other.
func (p *Patch) apart(ctx context.Context, python source.Python, files []source.File, leaks []source.Leak, of map[int]string, diffOf func([]source.File) string) error {
	for _, l := range leaks {
		alone, err := python.Patch(ctx, files, []source.Leak{l})
		if err != nil {
			return err
		}
		diff := diffOf(alone.Files)
		if diff == "" {
			continue
		}
		if at := slices.IndexFunc(p.Leaks, func(known LeakPatch) bool { return known.Diff == diff }); at >= 0 {
			p.Leaks[at].Of = append(p.Leaks[at].Of, of[l.ID])
			continue
		}
		p.Leaks = append(p.Leaks, LeakPatch{Of: []string{of[l.ID]}, Says: alone.Done[l.ID], Diff: diff})
	}
	for i := range p.Leaks {
		for k := range i {
			if overlap(hunksOf(p.Leaks[i].Diff), hunksOf(p.Leaks[k].Diff)) {
				p.Apart = fmt.Sprintf("patches %d and %d change the same lines: apply one of them, or the patch of all leaks", k+1, i+1)
				return nil
			}
		}
	}
	return nil
}

// hunk is the range of lines in a file that a hunk of a diff needs unchanged.
type hunk struct {
	file        string
	first, next int
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

func hunksOf(diff string) (all []hunk) {
	file := ""
	was, is := 0, 0 // remaining lines of the hunk, which may look like heads
	for line := range strings.Lines(diff) {
		if was > 0 || is > 0 {
			switch line[0] {
			case '-':
				was--
			case '+':
				is--
			case ' ':
				was--
				is--
			}
			continue
		}
		if name, ok := strings.CutPrefix(line, "--- "); ok {
			file = name
		}
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1]) // digits
			was, is = linesOf(m[2]), linesOf(m[3])
			all = append(all, hunk{file, first, first + was})
		}
	}
	return all
}

// linesOf is the number of lines in a hunk's head; one if it has none.
func linesOf(count string) int {
	if count == "" {
		return 1
	}
	n, _ := strconv.Atoi(count) // digits
	return n
}

func overlap(a, b []hunk) bool {
	return slices.ContainsFunc(a, func(x hunk) bool {
		return slices.ContainsFunc(b, func(y hunk) bool { return x.file == y.file && x.first < y.next && y.first < x.next })
	})
}

// unifiedDiff is the diff from files as they are to patched files, named relative to a folder if they are below it.
func unifiedDiff(was map[string]*source.File, is []source.File, folder string) string {
	var all bytes.Buffer
	for _, file := range is {
		name := file.Name
		if below, err := filepath.Rel(folder, name); err == nil && filepath.IsLocal(below) {
			name = below
		}
		name = strings.TrimPrefix(filepath.ToSlash(name), "/")
		text := unified.Diff("a/"+name, []byte(was[file.Name].Text), "b/"+name, []byte(file.Text))
		_, after, _ := bytes.Cut(text, []byte("\n")) // the first line is not part of the format
		all.Write(after)
	}
	return all.String()
}
