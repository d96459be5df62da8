package torch

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Frames of the interpreter, of the unwinder and of the dispatcher's boxing say
// nothing about who allocated, and come and go with builds of Python and
// PyTorch; the list is PyTorch's own viewer's, compared with C++ frames
// only: it would otherwise hide a function called train_start.
var (
	noisyNames = []string{
		"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "__libc_start_main",
		"PyEval_", "PyObject_", "PyFunction_",
	}
	noisyFiles = []string{
		"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c",
		"Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h",
	}
)

// isPython reports whether a frame is Python's: its file is a script, or "<string>" and the like. The file of a C++ frame is "??",
// empty or a source file.
func isPython(f snapshot.Frame) bool {
	return strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")
}

// isRecorders reports whether a frame is in memdiag's own recorder, which some operators go through only at some steps. Its canary
// counts as a leak.
func isRecorders(f snapshot.Frame) bool {
	return strings.Contains(f.File, "/memdiag/_") && strings.HasSuffix(f.File, ".py") && !strings.HasSuffix(f.File, "/_canary.py")
}

func isNoise(f snapshot.Frame) bool {
	if isPython(f) {
		return isRecorders(f)
	}
	if f.Function == "_start" {
		return true
	}
	for _, n := range noisyNames {
		if strings.Contains(f.Function, n) {
			return true
		}
	}
	for _, n := range noisyFiles {
		if strings.Contains(f.File, n) {
			return true
		}
	}
	return false
}

// stackTable adds frame lists to the snapshot's table, without their noise. A list of only noise is kept, since it still distinguishes
// its blocks. A stack of only our recorder's frames becomes no stack. PyTorch's words for unknown, a file of "??" or "none" and a line
// of 0, become "" and -1.
type stackTable struct {
	from   *symbols
	to     *snapshot.Stacks
	frames []tableFrame       // by their place in from
	stacks []snapshot.StackID // of lists; NoStack for those not met yet
	kept   []snapshot.FrameID
}

type tableFrame struct {
	id           snapshot.FrameID
	known, noise bool
}

func newStackTable(from *symbols, to *snapshot.Stacks) *stackTable {
	return &stackTable{from: from, to: to, frames: make([]tableFrame, len(from.frames)), stacks: make([]snapshot.StackID, len(from.lists))}
}

func (t *stackTable) stack(list uint32) snapshot.StackID {
	if id := t.stacks[list]; id != snapshot.NoStack || list == 0 {
		return id
	}
	t.kept = t.kept[:0]
	for _, raw := range t.from.lists[list] {
		if f := t.frame(raw); !f.noise {
			t.kept = append(t.kept, f.id)
		}
	}
	if len(t.kept) == 0 && t.recorders(list) {
		return snapshot.NoStack // autograd's thread called our recorder, and nothing of the program's
	}
	if len(t.kept) == 0 {
		for _, raw := range t.from.lists[list] {
			t.kept = append(t.kept, t.frame(raw).id)
		}
	}
	id := t.to.Intern(t.kept)
	t.stacks[list] = id
	return id
}

// recorders reports whether a list's frames are all of memdiag's recorder.
func (t *stackTable) recorders(list uint32) bool {
	return !slices.ContainsFunc(t.from.lists[list], func(raw uint32) bool {
		return !isRecorders(snapshot.Frame{File: t.from.strings[t.from.frames[raw].file]})
	})
}

func (t *stackTable) frame(raw uint32) tableFrame {
	if f := t.frames[raw]; f.known {
		return f
	}
	r := t.from.frames[raw]
	f := snapshot.Frame{Function: t.from.strings[r.name], File: t.from.strings[r.file], Line: int(r.line)}
	if f.Line == 0 {
		f.Line = -1
	}
	if f.File == "??" || f.File == "none" && f.Line < 0 { // the latter of torch.profiler's timeline
		f.File = ""
	}
	out := tableFrame{t.to.Frame(f), true, isNoise(f)}
	t.frames[raw] = out
	return out
}
