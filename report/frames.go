package report

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// location is "train.py:218", without the line where it is not known; "" for a
// frame that names no file.
func location(f snapshot.Frame) string { return atLine(f, brief(f.File)) }

func atLine(f snapshot.Frame, file string) string {
	switch {
	case f.File == "" || f.File == "??":
		return ""
	case f.Line <= 0:
		return file
	}
	return file + ":" + strconv.Itoa(f.Line)
}

// function never is empty.
func function(f snapshot.Frame) string {
	if f.Function == "" {
		return "<unknown function>"
	}
	return Printable(f.Function)
}

// besidePlace is the function that a frame is shown with beside its place; "" where only
// the place is known, as in what tracemalloc writes.
func besidePlace(f snapshot.Frame) string {
	if f.Function == "" && location(f) != "" {
		return ""
	}
	return shortFunction(f)
}

// frameText is "train.py:218 in train", or what is known of it; at is its location.
func frameText(f snapshot.Frame, at string) string {
	name := besidePlace(f)
	if at != "" && name != "" {
		return at + " in " + name
	}
	return at + name
}

// spot is where a frame is: its file and line, or else its function, or else its file.
func spot(f snapshot.Frame) string {
	if at := location(f); at != "" && (f.Line > 0 || f.Function == "") {
		return at
	}
	return shortFunction(f)
}

// shortFunction is bareFunction for a person.
func shortFunction(f snapshot.Frame) string { return shortened(bareFunction(f)) }

// bareFunction is a native function's name without its parameters, which may
// take lines; any other function's name as it is, as is "operator()".
func bareFunction(f snapshot.Frame) string {
	name := strings.TrimPrefix(function(f), "void ")
	if strings.HasSuffix(f.File, ".go") || !strings.HasSuffix(strings.TrimSuffix(name, " const"), ")") {
		return name
	}
	depth := 0
	for i := strings.LastIndexByte(name, ')'); i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 && strings.HasSuffix(name[:i], "operator") {
			return name
		}
		if depth == 0 {
			return name[:i]
		}
	}
	return name
}

// place names a row in few words: its headline frame, else the frame that shows
// best what allocated, else the label of a site without stack.
func place(row *diff.Row, headline int) string { return placeOf(row.Frames, row.Label, headline) }

func placeOf(frames []snapshot.Frame, label string, headline int) string {
	switch {
	case headline >= 0 && headline < len(frames):
		return spot(frames[headline])
	case len(frames) > 0:
		return spot(frames[originIn(frames, headline)])
	}
	return brief(label)
}

// originIn is the index of the frame that names a stack's place: its headline, else the
// innermost line of a program without a file, as of python -c, else a library's innermost
// line of Python, which can be looked up, else the operation. It is -1 without frames.
func originIn(frames []snapshot.Frame, headline int) int {
	if headline >= 0 || len(frames) == 0 {
		return headline
	}
	if typed := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return f.File == "<string>" || f.File == "<stdin>" }); typed >= 0 {
		return typed
	}
	python := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return strings.HasSuffix(f.File, ".py") && !isNoise(f) })
	return max(python, operation(frames))
}

// isLibrary asks diff, so that a report never disagrees with the headline.
func isLibrary(f snapshot.Frame) bool { return diff.Headline([]snapshot.Frame{f}) < 0 }

// isNoise is true for frames that stand in every stack and say nothing: the
// unwinder, the interpreter's own calls, a program's start, and memray's own.
// PyTorch's viewer hides the same ones.
func isNoise(f snapshot.Frame) bool {
	if strings.HasSuffix(f.File, "/memray/commands/run.py") {
		return true
	}
	if strings.HasSuffix(f.File, ".py") || strings.HasSuffix(f.File, ".go") {
		return false
	}
	return containsAny(f.Function, "unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start",
		"__libc_start", "PyEval_", "PyObject_", "PyFunction_", "PyMethod_", "PyVectorcall", "method_vectorcall", "PyRun_", "Py_Run", "Py_Bytes") ||
		containsAny(f.File, "core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c",
			"Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h")
}

// isPlumbing is true for the frames between an operation and the allocator:
// dispatch, shape inference, and the making of an empty result.
func isPlumbing(f snapshot.Frame) bool {
	if strings.HasSuffix(f.File, ".py") {
		return false
	}
	return containsAny(f.Function, "Allocator", "StorageImpl", "at::detail::", "::empty", "new_empty", ").empty", "malloc",
		"wrap_kernel_functor", "wrapper_CUDA", "wrapper_Composite", "::redispatch", "create_out", "set_output", "at::meta::",
		"structured_", "TensorIteratorBase", "autograd::VariableType::", "runtime.", "operator new") || strings.Contains(f.File, "engine/mem/") || isRusts(f)
}

// isRusts is true for functions of the crates that come with Rust, which allocate for whoever
// calls them: "alloc::raw_vec::finish_grow".
func isRusts(f snapshot.Frame) bool {
	return strings.HasSuffix(f.File, ".rs") && rustsOwn.MatchString(f.Function)
}

var rustsOwn = regexp.MustCompile(`^[<&]*(alloc|core|std)::`)

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// operation is the index of the frame that best names what was computed: a node of
// a backward pass, which has no other name; else the innermost that is neither
// noise nor plumbing; else the innermost of all. It needs at least one frame.
func operation(frames []snapshot.Frame) int {
	for i, f := range frames {
		if name := bareFunction(f); strings.HasSuffix(name, "::apply") && containsAny(name, "Backward", "AccumulateGrad") {
			return i
		}
	}
	for i, f := range frames {
		if !isNoise(f) && !isPlumbing(f) {
			return i
		}
	}
	return 0
}

// stackLine is one line of a stack as the text report shows it: a frame, or
// frames that it leaves out.
type stackLine struct {
	frame    *snapshot.Frame // nil: skipped frames
	headline bool
	library  bool
	skipped  int
	what     string // of skipped frames, in the singular: "library frame", "frame"
}

// maxUserFrames bounds a stack's lines; the outermost and the innermost are those
// that people look for.
const maxUserFrames, keepOuter = 16, 4

// stackLines lists a stack outermost first, beginning with the user's outermost
// frame: the user's frames, and of the libraries below them the frame that names
// the operation. Noise is left out without a word.
func stackLines(frames []snapshot.Frame, headline int, all bool) []stackLine {
	op := -1
	if len(frames) > 0 {
		op = operation(frames)
	}
	var lines []stackLine
	// One frame takes no more room than the words that it is left out.
	skip := func(f *snapshot.Frame, what string) {
		if n := len(lines); n > 0 && lines[n-1].what == what {
			lines[n-1].skipped++
			lines[n-1].frame = nil
			return
		}
		lines = append(lines, stackLine{frame: f, library: true, skipped: 1, what: what})
	}
	own, user := diff.Own(frames), 0
	for i := range frames {
		if own(frames[i]) {
			user++
		}
	}
	origin := originIn(frames, headline)
	seen := 0
	for i := len(frames) - 1; i >= 0; i-- {
		f := &frames[i]
		switch {
		case user == 0 && i == origin:
			lines = append(lines, stackLine{frame: f, library: true, headline: i != op})
		case own(*f):
			seen++
			// A comprehension has a frame of its own, which tracemalloc places at its line.
			if n := len(lines); !all && n > 0 && lines[n-1].frame != nil && *lines[n-1].frame == *f {
				lines[n-1].headline = lines[n-1].headline || i == headline
				continue
			}
			if !all && user > maxUserFrames && seen > keepOuter && user-seen >= maxUserFrames-keepOuter && i != headline {
				skip(f, "frame")
				continue
			}
			lines = append(lines, stackLine{frame: f, headline: i == headline})
		case user > 0 && seen == 0:
			// What starts the user's program is not part of the story.
		case i == op && seen == user, all && !isNoise(*f):
			lines = append(lines, stackLine{frame: f, library: true})
		case isNoise(*f):
		case i < op && seen == user:
			// Plumbing below the operation.
		default:
			skip(f, "library frame")
		}
	}
	return lines
}

// shortLabel is frameLabel without folders and parameters.
func shortLabel(f snapshot.Frame) string {
	name := besidePlace(f)
	if location(f) == "" {
		return name
	}
	f.File = path.Base(strings.ReplaceAll(f.File, `\`, "/"))
	return withPlace(name, location(f))
}

// frameLabel is "function (file:line)", however long.
func frameLabel(f snapshot.Frame) string {
	at := atLine(f, Printable(f.File))
	if at == "" {
		return function(f)
	}
	return withPlace(Printable(f.Function), at)
}

func withPlace(name, at string) string {
	if name == "" {
		return at
	}
	return name + " (" + at + ")"
}
