package cause

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// function is named for functions and files only.
func function(points int, terms ...string) clue {
	return clue{weigh: func(e *Evidence) (int, string) { return called(e, points, terms) }}
}

// inFile fits if a frame is in a library's file whose path ends so.
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

// enqueued fits if a queue of Python's standard library allocates most of it, as it stores items.
func enqueued(points int) clue {
	return fixed(points, func(e *Evidence) string {
		var in, all snapshot.Bytes
		put := ""
		for i := range e.Sites {
			s := &e.Sites[i]
			all += s.Requested
			if at := slices.IndexFunc(s.Frames, isPut); at >= 0 && s.library(at) {
				in, put = in+s.Requested, place(s.Frames[at])
			}
		}
		if 2*in <= all {
			return ""
		}
		return "they are allocated in " + put
	})
}

// isPut reports whether a frame is of a method that stores an item in a queue of queue, asyncio or multiprocessing.
func isPut(f snapshot.Frame) bool {
	method := strings.TrimPrefix(f.Function[strings.LastIndexByte(f.Function, '.')+1:], "_")
	return strings.HasPrefix(method, "put") && slices.ContainsFunc([]string{"/queue.py", "/asyncio/queues.py", "/multiprocessing/queues.py"}, func(end string) bool { return strings.HasSuffix(f.File, end) })
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
				continue // its functions are named after operations, and not after the program's purpose
			}
			if library && e.Objects {
				continue // a library also allocates many objects that do not stay, under names for all its functions
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
		return 0, "" // a program's file has names for much that it does; the container says more
	}
	return less, inFile
}

// common reports whether the frame says nothing about this site. That applies to the user's own code only: a
// library's frames show how a block was allocated, however many other blocks the library allocates.
func (s *Site) common(frame int) bool {
	return !s.library(frame) && s.Common != nil && s.Common[frame]
}

// machinery reports whether the frame is generic, so that any call may go through it.
func (s *Site) machinery(at int) bool { return frame.Machinery(s.Frames, at, s.library(at)) }

// library reports whether a frame is inside of the user's own code, that is, in what it calls.
func (s *Site) library(frame int) bool { return s.Headline < 0 || frame < s.Headline }

// operation fits if the innermost frame has one of these names: the operation that allocated the block.
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

// within fits if a call between the allocation and the user's code, except the operation itself, has one of these
// names; or if the user's own code does. A library that calls the user's code, such as a loader that starts its
// workers, does not count.
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

// modules fits if whole modules are recreated. On a language's heap it never fits, since any object has an __init__.
func modules(points int) clue {
	made := within(points, "whole modules are created again, and each stays live", moduleWords...)
	return clue{weigh: func(e *Evidence) (int, string) {
		if e.Objects {
			return 0, ""
		}
		return made.weigh(e)
	}}
}

// byOptimizer fits if a library's optimizer allocates the blocks: its own state, which no graph records. Another
// library's blocks within its step, such as in a closure that validates, are no such state.
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

// outsideClosures is a clue that does not fit blocks from within an optimizer's step: Lightning computes the loss
// there.
func outsideClosures(of clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if slices.ContainsFunc(e.Sites, (Site).inClosure) {
			return 0, ""
		}
		return of.weigh(e)
	}}
}

// inClosure reports whether an optimizer's step calls another library that allocates the blocks.
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

// optimizer is the innermost frame of a library's optimizer that allocates a site's blocks; nil if there is none.
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

// packageOf is the installed Python package of a frame; "torch" if the path names none.
func packageOf(f snapshot.Frame) string {
	if _, file, ok := strings.Cut(frame.Slashed(f.File), "-packages/"); ok {
		name, _, _ := strings.Cut(file, "/")
		return name
	}
	return "torch"
}

// inForward fits if blocks are allocated in a forward pass. A library's forward pass has half the points if a list
// holds the blocks that the program's call of it may have returned.
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

// inBackward fits if blocks are allocated in a backward pass of the user's own.
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

// ofBackward fits if backward itself allocates blocks that only a graph holds: a graph of gradients.
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
