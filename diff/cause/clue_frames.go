package cause

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// function is named, of functions and files alone.
func function(points int, terms ...string) clue {
	return clue{weigh: func(e *Evidence) (int, string) { return called(e, points, terms) }}
}

// inFile is a library's file, by the end of its path.
func inFile(points int, ends ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			for k, f := range s.Frames {
				if s.library(k) && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(f.File, end) }) {
					return "they are allocated in " + place(f)
				}
			}
		}
		return ""
	})
}

func called(e *Evidence, points int, terms []string) (int, string) {
	less, inFile := points-2*sign(points), ""
	for i := range e.Sites {
		s := &e.Sites[i]
		for k, f := range s.Frames {
			if s.common(k) || s.machinery(k) {
				continue
			}
			library := s.library(k)
			if library && strings.Contains(f.File, "/torch/nn/functional.py") {
				continue // it is named after an operation, and not after what the program is at
			}
			if library && e.Objects {
				continue // it makes many objects on the way to what stays, and is named after all that it can do
			}
			if names(ownWords(f, library), terms) {
				return points, "they are allocated in " + place(f)
			}
			if library && !strings.Contains(f.File, "/torch/nn/modules/") && names(fileWords(f, true), terms) {
				return points, "they are allocated in " + installed(f)
			}
			if inFile == "" && !library && names(fileWords(f, false), terms) {
				inFile = "they are allocated in " + frame.Base(f.File)
			}
		}
	}
	if less*sign(points) <= 0 || inFile == "" {
		return 0, ""
	}
	if _, kept := keepsAll(1).weigh(e); kept != "" {
		return 0, "" // a program is called after much that it does; the container says more
	}
	return less, inFile
}

// common fits if the frame says nothing of this site: of the user's own
// code only, since what a library does to make a block shows in its frames however
// many others it makes.
func (s *Site) common(frame int) bool {
	return !s.library(frame) && s.Common != nil && s.Common[frame]
}

// machinery reports whether any call may go through the frame.
func (s *Site) machinery(at int) bool { return frame.Machinery(s.Frames, at, s.library(at)) }

// library fits if a frame lies below the user's own code.
func (s *Site) library(frame int) bool { return s.Headline < 0 || frame < s.Headline }

// operation fits if the innermost frame bears one of these names: what was done
// to make the block.
func operation(points int, what string, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			if f := e.Sites[i].Frames; len(f) > 0 && names(functionWords(lastName(f[0].Function)), terms) {
				return what
			}
		}
		return ""
	})
}

// within fits if a call between the allocation and the user's code, but the
// operation itself, bears one of these names; or the user's own code does. A library that calls that code, as a loader
// that starts its workers, says nothing.
func within(points int, what string, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			own := frame.Own(s.Frames)
			for k := 1; k < len(s.Frames); k++ {
				if !s.library(k) && !own(s.Frames[k]) || s.common(k) || s.machinery(k) {
					continue
				}
				if names(functionWords(lastName(s.Frames[k].Function)), terms) {
					return what
				}
			}
		}
		return ""
	})
}

// modules fits if whole modules are recreated: on a language's heap any object has an __init__.
func modules(points int) clue {
	made := within(points, "whole modules are created again, and each stays live", moduleWords...)
	return clue{weigh: func(e *Evidence) (int, string) {
		if e.Objects {
			return 0, ""
		}
		return made.weigh(e)
	}}
}

// byOptimizer fits if a library's optimizer makes the blocks: state of its own, which
// no graph records. What its step calls of another library, as a closure that validates, is no such state.
func byOptimizer(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			if f := e.Sites[i].optimizer(); f != nil {
				return "an optimizer allocates them as its state in " + place(*f)
			}
		}
		return ""
	})
}

// outsideClosures is a clue that does not fit what an optimizer's step calls: Lightning computes the loss below it.
func outsideClosures(of clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if slices.ContainsFunc(e.Sites, (Site).inClosure) {
			return 0, ""
		}
		return of.weigh(e)
	}}
}

// inClosure reports whether an optimizer's step calls another library that makes the blocks.
func (s Site) inClosure() bool {
	maker := "torch" // or the package that it serves
	for _, f := range s.Frames {
		pkg := packageOf(f)
		if maker == "torch" {
			maker = pkg
		}
		if pkg != maker && names(append(ownWords(f, true), fileWords(f, true)...), []string{"optim", "optimizer"}) {
			return true
		}
	}
	return false
}

// optimizer is the innermost frame of a library's optimizer that makes a site's blocks; nil where none does.
func (s *Site) optimizer() *snapshot.Frame {
	maker := "torch" // or the package that it serves
	for k, f := range s.Frames {
		pkg := packageOf(f)
		if maker == "torch" {
			maker = pkg
		}
		if !s.library(k) || pkg != maker || strings.Contains(strings.ToLower(f.Function), "backward") {
			return nil
		}
		if names(append(ownWords(f, true), fileWords(f, true)...), []string{"optim", "optimizer"}) {
			return &s.Frames[k]
		}
	}
	return nil
}

// packageOf is the installed package of Python's that a frame is of; "torch" where none is named.
func packageOf(f snapshot.Frame) string {
	if _, file, ok := strings.Cut(frame.Slashed(f.File), "-packages/"); ok {
		name, _, _ := strings.Cut(file, "/")
		return name
	}
	return "torch"
}

// inForward fits if blocks are born in a forward pass. What a library's makes is worth half where a list of the program's
// that calls it has them: they may be what it returned.
func inForward(points int) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		found := 0
		for i := range e.Sites {
			s := &e.Sites[i]
			for k, f := range s.Frames {
				switch {
				case s.machinery(k) || !strings.EqualFold(lastName(f.Function), "forward"):
				case s.library(k) && returned(1).of(e):
					found = max(found, points/2)
				default:
					found = points
				}
			}
		}
		if found == 0 {
			return 0, ""
		}
		return found, "they are allocated in a forward pass, and outlive their step"
	}}
}

// inBackward fits if a backward pass of the user's own computes what is kept.
func inBackward(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			for k, f := range s.Frames {
				if !s.library(k) && strings.EqualFold(lastName(f.Function), "backward") {
					return "they are computed in a backward pass, and outlive their step"
				}
			}
		}
		return ""
	})
}

// ofBackward fits if backward itself makes what a graph then holds: a graph of
// gradients.
func ofBackward(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			f := e.Sites[i].Frames
			if len(f) > 0 && e.Sites[i].Owners == snapshot.OwnedByTape && names(functionWords(lastName(f[0].Function)), []string{"backward", "backward with"}) {
				return "backward makes its own graph, which holds them"
			}
		}
		return ""
	})
}
