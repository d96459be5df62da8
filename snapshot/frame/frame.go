// Package frame says what a frame of a stack is: the user's own code or a library's, a profiler's,
// plumbing, or an operation. Its lists are in lists.go: a library that memdiag takes for the user's
// own code is added there.
package frame

import (
	"path"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Headline is the index of the innermost frame of the user's own code: not of a framework, an installed package, the language's library
// or native code. In a native stack, without frames of Python or Go, it is the innermost frame outside the system's libraries. It is -1
// if the stack has none.
func Headline(frames []snapshot.Frame) int { return slices.IndexFunc(frames, Own(frames)) }

// Own returns a function that reports whether a frame in this stack is the user's own code, and not a library's.
func Own(frames []snapshot.Frame) func(snapshot.Frame) bool {
	if slices.ContainsFunc(frames, Interpreted) {
		return func(f snapshot.Frame) bool { return !Library(f) }
	}
	if slices.ContainsFunc(frames, isNativeSource) {
		installed, own := crates(frames)
		return func(f snapshot.Frame) bool {
			crate := crateOf(f)
			isForeign := slices.Contains(installed, crate) || crate != "" && len(own) > 0 && !slices.Contains(own, crate) && !ofCrate.MatchString(Slashed(f.File))
			return isNativeSource(f) && !isForeign // frames without a line in such a stack start the program, or are linked into it
		}
	}
	return isBinary
}

// Interpreted reports whether a frame is of Python or Go.
func Interpreted(f snapshot.Frame) bool {
	file := Slashed(f.File)
	return isScript(file) || strings.HasSuffix(file, ".ipynb") || strings.HasPrefix(file, "/tmp/ipykernel")
}

// isScript reports whether a file is a source of Python or Go.
func isScript(file string) bool {
	return strings.HasSuffix(file, ".py") || strings.HasSuffix(file, ".go")
}

// Library reports whether a frame is not the user's own in a program of Python or Go: native code,
// an installed package, the language's library, or memdiag's engine.
func Library(f snapshot.Frame) bool {
	file := Slashed(f.File)
	switch {
	case !Interpreted(f):
		return true // C++ frames have "??", "" or a bare .cpp; "<frozen …>" and "<string>" are not a place to edit
	case strings.HasSuffix(file, ".go") && strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), engineRoom):
		return !strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), workloadRoom)
	}
	return isGoLibrary(f) || containsAny(file, libraryPaths) || windowsLibrary.MatchString(file)
}

// isStandard reports whether a frame is of the library that a language comes with, or native.
func isStandard(f snapshot.Frame) bool {
	file := Slashed(f.File)
	switch {
	case strings.HasPrefix(file, "<") && !strings.HasPrefix(file, "<frozen"):
		return false // typed, or handed to python -c
	case !Interpreted(f):
		return true
	case IsGo(f):
		return isGosPackage(goPackage(f.Function))
	}
	return Library(f) && !strings.Contains(file, "-packages/")
}

func isProfiler(f snapshot.Frame) bool {
	if IsGo(f) {
		return slices.Contains(profilerPackages, goPackage(f.Function))
	}
	return Library(f) && containsAny(Slashed(f.File), profilerModules)
}

// ByProfiler reports whether a profiler allocated for itself: the innermost call that is not of
// the language's own library is the profiler's. What runs under a profiler is not meant.
func ByProfiler(frames []snapshot.Frame) bool {
	i := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return isProfiler(f) || !isStandard(f) })
	return i >= 0 && isProfiler(frames[i])
}

// InLoop reports whether calls run in an event loop, which runs all tasks of a program: a line outside the loop says nothing about what
// they allocate.
func InLoop(frames []snapshot.Frame) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool {
		_, function := path.Split(strings.ReplaceAll(f.Function, ".", "/"))
		return slices.ContainsFunc(eventLoops, func(l [2]string) bool { return function == l[1] && strings.HasSuffix(Slashed(f.File), l[0]) })
	})
}

// Trains reports whether a frame is Python code, which may train anything, or in a library of tensors.
func Trains(f snapshot.Frame) bool {
	return Interpreted(f) && !IsGo(f) || tensors.MatchString(f.Function)
}

// Installed is the path of a file from the folder of installed packages or modules on, and whether
// it lies in one.
func Installed(file string) (string, bool) {
	for _, folder := range packageFolders {
		if _, rest, ok := strings.Cut(Slashed(file), folder); ok {
			return rest, true
		}
	}
	return "", false
}

// Slashed is a path with the slashes of Unix.
func Slashed(file string) string { return strings.ReplaceAll(file, `\`, "/") }

// Base is a file's name without its folders, of any system.
func Base(file string) string { return path.Base(Slashed(file)) }

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}
