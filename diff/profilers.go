package diff

import (
	"path"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// profilerModules are Python's modules that a program calls to look at memory, as parts of
// their files' paths. Those that run the program, such as memray, are below all of its calls.
var profilerModules = []string{
	"/tracemalloc.py", "/memory_profiler.py", "/pympler/", "/objgraph.py", "/guppy/", "/psutil/",
	"/torch/profiler/", "/torch/cuda/_memory_viz.py", "/jax/_src/profiler.py",
}

// profilerPackages are Go's.
var profilerPackages = []string{"runtime/pprof", "net/http/pprof"}

func isProfiler(f snapshot.Frame) bool {
	file := slashed(f.File)
	if path.Ext(file) == ".go" {
		return slices.Contains(profilerPackages, goPackage(f.Function))
	}
	return isLibrary(f) && slices.ContainsFunc(profilerModules, func(part string) bool { return strings.Contains(file, part) })
}

// isStandard holds for the library that a language comes with, and for native code.
func isStandard(f snapshot.Frame) bool {
	file := slashed(f.File)
	switch {
	case strings.HasPrefix(file, "<") && !strings.HasPrefix(file, "<frozen"):
		return false // typed, or handed to python -c
	case !isInterpreted(f):
		return true
	case path.Ext(file) == ".go":
		return cause.IsGosPackage(goPackage(f.Function))
	}
	return isLibrary(f) && !strings.Contains(file, "-packages/")
}

// byProfiler holds for memory that a profiler allocates for itself: by the innermost call
// that is not of the language's own library. What runs under a profiler is not meant.
func byProfiler(frames []snapshot.Frame) bool {
	i := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return isProfiler(f) || !isStandard(f) })
	return i >= 0 && isProfiler(frames[i])
}

// observed says of memory that profilers hold for themselves that it is no leak of the
// program's, as long as it is little: to look leaves a few bytes each time.
func (r *Result) observed(row *Row, j *judgement) {
	if j.verdict != Leak && j.verdict != Inconclusive || !byProfiler(row.Frames) {
		return
	}
	if r.profilers == nil {
		var own, all snapshot.Bytes
		for i := range r.Rows {
			held := r.Rows[i].After.Bytes
			if all += held; byProfiler(r.Rows[i].Frames) {
				own += held
			}
		}
		little := own <= max(profilerBytes, snapshot.Bytes(profilerShare*float64(all)))
		r.profilers = &little
	}
	if *r.profilers {
		j.reasons = nil
		j.call(Clean, Weak, "its blocks were allocated by a profiler, not by the program")
	}
}
