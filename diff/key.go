package diff

import (
	"path"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Match is how much of two stacks is equal if they count as the same, strongest first. Within a run only Exact
// counts. Between runs of code that was edited, moved or rebuilt, the strongest level that fits counts.
type Match string

// The levels of a match.
const (
	Exact     Match = "exact"     // every frame, to the line
	Lines     Match = "lines"     // the frames of scripts, to the line: native frames may differ
	Functions Match = "functions" // the same without lines
	Names     Match = "names"     // the same without paths: functions alone
	Innermost Match = "innermost" // the user's innermost function, with the library frames below it
	Symbols   Match = "symbols"   // the native symbols, normalised, of a stack that has no other frame
)

// matched says how two stacks were matched.
func (m Match) matched() string {
	switch m {
	case Exact:
		return "stacks matched exactly"
	case Lines:
		return "stacks matched by their scripts' lines"
	case Functions:
		return "stacks matched by files and functions"
	case Names:
		return "stacks matched by functions' names alone"
	case Innermost:
		return "stacks matched by the innermost function of the program alone"
	}
	return "stacks matched by native symbols"
}

// levels are tried in this order.
var levels = [...]Match{Exact, Lines, Functions, Names, Innermost, Symbols}

// keyer returns keys for a run's stacks. Paths are relative to an installed package's root, or else to the common
// folder of the run's own files.
type keyer struct{ root string }

func newKeyer(rows []Row) keyer {
	root, first := "", true
	for i := range rows {
		for _, f := range rows[i].Frames {
			if frame.Library(f) {
				continue
			}
			dir := path.Dir(frame.Slashed(f.File)) + "/"
			if first {
				root, first = dir, false
			}
			for !strings.HasPrefix(dir, root) {
				root = path.Dir(strings.TrimSuffix(root, "/"))
				if root == "." || root == "/" {
					root = ""
				} else {
					root += "/"
				}
			}
		}
	}
	return keyer{root}
}

// relative is a path without the part that differs between machines.
func (k keyer) relative(file string) string {
	if rest, ok := frame.Installed(file); ok {
		return rest
	}
	return strings.TrimPrefix(frame.Slashed(file), k.root)
}

// key returns the row's key at a level; false if its stack has none there.
func (k keyer) key(row *Row, level Match) (snapshot.Hash, bool) {
	if level == Exact {
		return row.Hash, true
	}
	var text strings.Builder
	scripts := false
	for _, f := range row.Frames {
		if !frame.Interpreted(f) {
			continue
		}
		scripts = true
		text.WriteString(f.Function)
		if level == Innermost && !frame.Library(f) {
			break
		}
		if level != Names && level != Innermost {
			text.WriteString("\x00" + k.relative(f.File))
		}
		if level == Lines {
			text.WriteString("\x00" + strconv.Itoa(f.Line))
		}
		text.WriteString("\x01")
	}
	if level != Symbols {
		return snapshot.Hash(xxhash.Sum64String(text.String())), scripts
	}
	if scripts || len(row.Frames) == 0 {
		return 0, false
	}
	for _, f := range row.Frames {
		if name := frame.Symbol(f); name != "" {
			text.WriteString(name + "\x01")
		}
	}
	return snapshot.Hash(xxhash.Sum64String(text.String())), text.Len() > 0
}
