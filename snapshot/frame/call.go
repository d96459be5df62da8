package frame

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Noise reports whether a frame is in every stack and shows nothing: the unwinder, the interpreter's own calls, a program's start, and
// memray's own frames.
func Noise(f snapshot.Frame) bool {
	if strings.HasSuffix(f.File, memrayRun) {
		return true
	}
	return !isScript(f.File) && (isNoisy(f.Function) || containsAny(f.File, noisyFiles))
}

func isNoisy(function string) bool { return function == "_start" || containsAny(function, noisyNames) }

// isPlumbing reports whether a frame lies between an operation and the allocator.
func isPlumbing(f snapshot.Frame) bool {
	if strings.HasSuffix(f.File, ".py") {
		return false
	}
	return containsAny(f.Function, between) || strings.Contains(f.File, allocatorRoom) ||
		strings.HasSuffix(f.File, ".rs") && rustsOwn.MatchString(f.Function)
}

// Operation is the index of the frame that best names what was computed: a node of
// a backward pass, which has no other name; else the innermost that is neither
// noise nor plumbing; else the innermost of all. It needs at least one frame.
func Operation(frames []snapshot.Frame) int {
	for i, f := range frames {
		if name := WithoutParameters(f); strings.HasSuffix(name, "::apply") && containsAny(name, []string{"Backward", "AccumulateGrad"}) {
			return i
		}
	}
	return max(0, slices.IndexFunc(frames, func(f snapshot.Frame) bool { return !Noise(f) && !isPlumbing(f) }))
}

// Origin is the index of the frame that names a stack's place: its headline, else the
// innermost line of a program without a file, as of python -c, else a library's innermost
// line of Python, which can be looked up, else the operation. It is -1 without frames.
func Origin(frames []snapshot.Frame, headline int) int {
	if headline >= 0 || len(frames) == 0 {
		return headline
	}
	if typed := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return f.File == "<string>" || f.File == "<stdin>" }); typed >= 0 {
		return typed
	}
	python := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return strings.HasSuffix(f.File, ".py") && !Noise(f) })
	return max(python, Operation(frames))
}

// Machinery reports whether any call may go through a frame, so that its name says nothing of a
// block: that an allocator caches, an engine evaluates functions and an output is set. Nodes of a
// backward pass and collectives do say something. Of a frame of a library more is machinery.
func Machinery(frames []snapshot.Frame, at int, library bool) bool {
	f := frames[at]
	script := func(f snapshot.Frame) bool { return isScript(f.File) }
	switch {
	case containsAny(f.File, runners):
		return true
	case library && (IsGo(f) && isGosPackage(goPackage(f.Function)) || containsAny(f.File, machinery) || script(f) && named(f, wrappers...)):
		return true
	case script(f), strings.Contains(f.Function, "Backward"), strings.HasPrefix(f.Function, "c10d::"):
		return false
	case slices.ContainsFunc(frames, script):
		return true
	}
	name := strings.TrimPrefix(f.Function, "void ")
	return strings.HasPrefix(name, "at::") || strings.HasPrefix(name, "c10::") || strings.HasPrefix(name, "torch::")
}

// named reports whether a function or method has one of these names, in either case.
func named(f snapshot.Frame, names ...string) bool {
	return slices.Contains(names, strings.ToLower(f.Function[strings.LastIndexByte(f.Function, '.')+1:]))
}

// CallsModel reports whether a frame is a call of a model, or of a part of one.
func CallsModel(f snapshot.Frame) bool { return named(f, "forward", "__call__", "call") }

// InForward reports whether a frame is of a module's forward pass: the method that all modules of
// PyTorch have, and PyTorch's own.
func InForward(f snapshot.Frame) bool {
	return named(f, "forward") || strings.Contains(f.File, "torch/nn/")
}

// GoesBackward reports whether a stack runs through a backward pass or an optimizer's step.
func GoesBackward(frames []snapshot.Frame) bool {
	return slices.ContainsFunc(frames, func(f snapshot.Frame) bool {
		return strings.Contains(strings.ToLower(f.Function), "backward") || strings.Contains(f.File, "optim/")
	})
}

// IsCustomOperation reports whether a frame is the forward or backward of an operation of the
// user's own, which the autodiff engine calls: "apply" in PyTorch and here.
func IsCustomOperation(frames []snapshot.Frame, at int) bool {
	if named(frames[at], "backward") {
		return true
	}
	return named(frames[at], "forward") && at+1 < len(frames) && Library(frames[at+1]) && named(frames[at+1], "apply")
}

// IsLiteral reports whether a function has no name of its own.
func IsLiteral(f snapshot.Frame) bool { return literal.MatchString(f.Function) }

// WithoutParameters is a native function's name without its result and parameters, which may
// take lines; any other function's name is as it is, as is "operator()".
func WithoutParameters(f snapshot.Frame) string {
	name := strings.TrimPrefix(f.Function, "void ")
	if IsGo(f) || !strings.HasSuffix(strings.TrimSuffix(name, " const"), ")") {
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

// Symbol is a native function without what a build may change: clones, template
// arguments and parameters; "" for noise.
func Symbol(f snapshot.Frame) string {
	name := f.Function
	if isNoisy(name) || containsAny(name, dispatcher) {
		return ""
	}
	name = clones.ReplaceAllString(name, "")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(snapshot.WithoutArguments(name), "void "), " const"))
}
