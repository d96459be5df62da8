package diff

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
)

// Match is how much of two stacks is equal where they are taken for the same,
// strongest first. Within a run only Exact counts; between runs of code that was
// edited, moved or rebuilt in between, the strongest that fits.
type Match string

// The levels of a match.
const (
	Exact     Match = "exact"     // every frame, to the line
	Lines     Match = "lines"     // the frames of scripts, to the line: native frames may differ
	Functions Match = "functions" // the same without lines
	Names     Match = "names"     // the same without paths: functions alone
	Innermost Match = "innermost" // the innermost function of the user's, with the library's below it
	Symbols   Match = "symbols"   // the native symbols, normalised, of a stack that has no other frame
)

// matched says by what of them two stacks were taken for one.
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

// keyer makes keys of a run's stacks. Paths are taken from an installed package's
// root or else from the folder that all of the run's own files are below.
type keyer struct{ root string }

func newKeyer(rows []Row) keyer {
	root, first := "", true
	for i := range rows {
		for _, f := range rows[i].Frames {
			if isLibrary(f) {
				continue
			}
			dir := path.Dir(slashed(f.File)) + "/"
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

func slashed(file string) string { return strings.ReplaceAll(file, `\`, "/") }

// relative is a path without what differs between machines.
func (k keyer) relative(file string) string {
	file = slashed(file)
	for _, installed := range []string{"site-packages/", "dist-packages/", "/pkg/mod/"} {
		if _, rest, ok := strings.Cut(file, installed); ok {
			return rest
		}
	}
	return strings.TrimPrefix(file, k.root)
}

// key is the row's at a level; false where the level has none for its stack.
func (k keyer) key(row *Row, level Match) (snapshot.Hash, bool) {
	if level == Exact {
		return row.Hash, true
	}
	var text strings.Builder
	scripts := false
	for _, f := range row.Frames {
		if !isInterpreted(f) {
			continue
		}
		scripts = true
		text.WriteString(f.Function)
		if level == Innermost && !isLibrary(f) {
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
		if name := symbol(f); name != "" {
			text.WriteString(name + "\x01")
		}
	}
	return snapshot.Hash(xxhash.Sum64String(text.String())), text.Len() > 0
}

var (
	// clones are the marks that compilers put behind a function's copies.
	clones = regexp.MustCompile(`\.(llvm\.\d+|localalias(\.\d+)?|cold(\.\d+)?|constprop\.\d+|isra\.\d+|part\.\d+)`)
	// noise are calls between any two others: the interpreter's, the unwinder's and
	// the dispatcher's, as PyTorch's own viewer leaves out.
	noise = regexp.MustCompile(`unwind::unwind|CapturedTraceback::gather|gather_with_cpp|^_start$|__libc_start|PyEval_|PyObject_|PyFunction_|PyMethod_|PyVectorcall|method_vectorcall|c10::impl::|wrap_kernel_functor`)
)

// symbol is a native function without what a build may change: clones, template
// arguments and parameters; "" for noise.
func symbol(f snapshot.Frame) string {
	name := f.Function
	if noise.MatchString(name) {
		return ""
	}
	name = clones.ReplaceAllString(name, "")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(snapshot.WithoutArguments(name), "void "), " const"))
}
