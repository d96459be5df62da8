package cause

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// clue is one thing that speaks for a cause, or against it where points are
// negative.
type clue struct {
	needed bool // the cause is out of the question without it
	// weigh returns the points and what fits, in words; "" where it does not.
	weigh func(*Evidence) (points int, why string)
}

// need makes a clue one without which a cause is out of the question.
func need(c clue) clue {
	c.needed = true
	return c
}

// fixed is a clue that is worth the same whenever it fits.
func fixed(points int, fits func(*Evidence) string) clue {
	return clue{weigh: func(e *Evidence) (int, string) { return points, fits(e) }}
}

// named fits if what the blocks hang on, or a function that allocates them,
// bears one of these names in the trade: worth points. What holds the blocks says
// more of why they stay than where they were born, and is worth two more; the name
// of a file of the user's says less, and is worth two less.
func named(points int, terms ...string) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if !isVariable(h) && names(holderWords(h.Path), terms) {
					return points + 2*sign(points), holds(h)
				}
			}
		}
		return called(e, points, terms)
	}}
}

// isVariable reports whether a holder is a variable, which has the last block and says nothing of the others.
func isVariable(h snapshot.Holder) bool {
	return h.Kind == "variable" && h.Items == 0 && !strings.Contains(h.Path, "[")
}

// function is named, of functions and files alone.
func function(points int, terms ...string) clue {
	return clue{weigh: func(e *Evidence) (int, string) { return called(e, points, terms) }}
}

// ofLibrary is function, of a library's files alone: a library names functions by what they may do, if asked to.
func ofLibrary(points int, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			for k, f := range s.Frames {
				if s.library(k) && names(fileWords(f, true), terms) {
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
			if names(ownWords(f, library), terms) || library && !strings.Contains(f.File, "/torch/nn/modules/") && names(fileWords(f, true), terms) {
				return points, "they are allocated in " + place(f)
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

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
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
// operation itself, bears one of these names.
func within(points int, what string, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			for k := 1; k < len(s.Frames); k++ {
				if !s.common(k) && !s.machinery(k) && names(functionWords(lastName(s.Frames[k].Function)), terms) {
					return what
				}
			}
		}
		return ""
	})
}

// modules fits if whole modules are recreated: on a language's heap any object has an __init__.
func modules(points int) clue {
	made := within(points, "whole modules are made anew, and each stays", moduleWords...)
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
				return "an optimizer makes them in " + place(*f) + ", as state of its own"
			}
		}
		return ""
	})
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
		return found, "they are born in a forward pass, and outlive their step"
	}}
}

// returned fits if a list holds what a library's forward pass made for a call of the program's that is in none: what the
// model returned, as far as can be told. What a closure has may be a hook's, which sees all modules.
func returned(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			in := func(k int) bool { return strings.EqualFold(lastName(s.Frames[k].Function), "forward") }
			own, below := false, false
			for k := range s.Frames {
				own = own || in(k) && !s.library(k)
				below = below || in(k) && s.library(k) && !s.machinery(k)
			}
			if below && !own && len(s.Holders) > 0 && general(s.Holders[0].Kind) == "list" && !strings.Contains(s.Holders[0].Path, closure) {
				return "a list has what the model returned"
			}
		}
		return ""
	})
}

func (c clue) of(e *Evidence) bool {
	_, why := c.weigh(e)
	return why != ""
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

// owned fits if blocks are held by these classes of the engine, and by no other.
func owned(points int, by snapshot.Owners, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Owners == by }) {
			return what
		}
		return ""
	})
}

// partly fits if blocks are held by such a class among others.
func partly(points int, by snapshot.Owners, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if e.owners()&by == by {
			return what
		}
		return ""
	})
}

// held fits if a site's first holder, which is its longest container, is of one
// of these kinds. A list is also what Python names otherwise, and a map is.
func held(points int, kinds ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			h := e.Sites[i].Holders
			if len(h) == 0 {
				continue
			}
			if slices.Contains(kinds, h[0].Kind) || slices.Contains(kinds, general(h[0].Kind)) {
				return holds(h[0])
			}
		}
		return ""
	})
}

// general is the kind that a kind of Python's is one of.
func general(kind string) string {
	switch kind {
	case "dict", "cache":
		return "map"
	case "tuple", "set", "deque", "chain":
		return "list"
	}
	return kind
}

func holds(h snapshot.Holder) string {
	if h.Kind == snapshot.Nodes {
		return fmt.Sprintf("%s is its end", h.Path)
	}
	if h.Items > 0 {
		return fmt.Sprintf("the %s %s holds them", h.Kind, h.Path)
	}
	return h.Path + " holds them"
}

// byOwners is a clue for programs that tell who owns their blocks, as those that release
// them by hand do.
func byOwners(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if e.owners() == 0 {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// onTape fits if the graph holds blocks, or owners are not known.
func onTape() clue {
	return need(fixed(0, func(e *Evidence) string {
		if o := e.owners(); o != 0 && o&snapshot.OwnedByTape == 0 {
			return ""
		}
		return "the autodiff graph may hold them"
	}))
}

// nameless fits blocks that hang on a graph to which no name leads.
func nameless(points int) clue {
	return unnamed(points, "graph", "they hang on a graph to which no name leads")
}

// unnamed fits blocks of a kind of holder to which no name leads.
func unnamed(points int, kind, what string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			if slices.ContainsFunc(e.Sites[i].Holders, func(h snapshot.Holder) bool { return h.Path == snapshot.Nameless && h.Kind == kind }) {
				return what
			}
		}
		return ""
	})
}

// inGraph fits if sites grow in step as what a graph saves does.
func inGraph(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.Graph {
			return ""
		}
		return "the stacks of a forward pass grow in step, as what a graph saves does"
	})
}

// unheld fits if holders were looked for in the run's files, and none was found
// for these blocks.
func unheld(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.owners() != snapshot.OwnedByUser || slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return ""
		}
		return "the program has a reference, but nothing in its model holds them"
	})
}

// lost fits if nothing in the program can release the blocks any more.
func lost(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Lost }) {
			return "the program let go of what refers to them and did not release them"
		}
		return ""
	})
}

// anyOf is worth as much as those of its clues together that hold.
func anyOf(clues ...clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		sum, best, text := 0, 0, ""
		for _, c := range clues {
			if points, why := c.weigh(e); why != "" {
				sum += points
				if points > best {
					best, text = points, why
				}
			}
		}
		return sum, text
	}}
}

// both fits if two clues do, and counts as the first.
func both(c, besides clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if _, why := besides.weigh(e); why == "" {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// perObject fits if each block hangs on an object of its own, in one list or map of
// such objects: "ops[].result".
func perObject(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if strings.Contains(h.Path, "[].") && strings.Count(h.Path, "[]") == 1 && int64(h.Items) >= e.Sites[i].Live {
					return fmt.Sprintf("each hangs on an object of its own, %s", h.Path)
				}
			}
		}
		return ""
	})
}

// follows fits if growth follows one of these.
func follows(points int, what string, drivers ...Driver) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.Contains(drivers, e.Driver) {
			return what
		}
		return ""
	})
}

// shaped fits one of these shapes.
func shaped(points int, what string, shapes ...Shape) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.Contains(shapes, e.Shape) {
			return what
		}
		return ""
	})
}

// upTo fits if new blocks are as large as this on the average, or smaller.
func upTo(points int, most snapshot.Bytes, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if each := e.each(); each > 0 && each <= most {
			return fmt.Sprintf(what, each)
		}
		return ""
	})
}

// notGo rules out what cannot be in Go, whose collector minds no cycles.
func notGo() clue {
	return need(fixed(0, func(e *Evidence) string {
		for i := range e.Sites {
			if slices.ContainsFunc(e.Sites[i].Frames, func(f snapshot.Frame) bool { return strings.HasSuffix(f.File, ".go") }) {
				return ""
			}
		}
		return "it is no program in Go"
	}))
}

// gathered fits if a container is known to have taken in at least half of the
// blocks, or one of several containers to hold some: they are where the program put
// them, and no release was missed.
func gathered(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if h.Items > 0 && (2*int64(h.Items) >= e.Sites[i].Live || strings.Contains(h.Path, "[]")) {
					return holds(h)
				}
			}
		}
		return ""
	})
}

// keepsAll fits if the blocks that grew most hang on a container that has as many
// items as half of them, or more: it gathers them, by themselves or with the graphs that they
// are of. On a language's heap an item is of a few blocks, and so it is where it has those of several stacks. So does one that has become longer by
// their number, however many each item has: a model has a block for each weight.
func keepsAll(points int) clue {
	return fixed(points, func(e *Evidence) string {
		s, each := &e.Sites[0], int64(2)
		for _, h := range s.Holders {
			if e.Objects || e.keptBy(h.Path) > 1 {
				each = 8
			}
			if slices.Contains([]string{"list", "map", "graph"}, general(h.Kind)) && (s.TakenIn || each*int64(h.Items) >= s.Live) {
				return holds(h)
			}
		}
		return ""
	})
}

// keptBy is how many of the sites hang on a holder.
func (e *Evidence) keptBy(path string) (sites int) {
	for i := range e.Sites {
		if slices.ContainsFunc(e.Sites[i].Holders, func(h snapshot.Holder) bool { return h.Path == path }) {
			sites++
		}
	}
	return sites
}

// unlessKept is a clue that counts where no container gathers the blocks.
func unlessKept(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if _, kept := keepsAll(1).weigh(e); kept != "" {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// heldBeside fits if a list or map that bears none of these names holds blocks.
func heldBeside(points int, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if kind := general(h.Kind); (kind == "list" || kind == "map") && h.Items > 0 && !names(holderWords(h.Path), terms) {
					return holds(h)
				}
			}
		}
		return ""
	})
}

// severalParts fits if each entry keeps blocks of several stacks that no graph joins, as
// a frame of a traceback does.
func severalParts(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if len(e.Sites) < 2 || e.Graph || e.owners()&snapshot.OwnedByTape != 0 {
			return ""
		}
		return fmt.Sprintf("each keeps blocks of %d stacks", len(e.Sites))
	})
}

// uncollected fits if nobody was found to hold the blocks of a Python program whose
// collector of cycles is off.
func uncollected(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.CollectorOff || slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return ""
		}
		return "the collector of cycles is off, and no name of the program leads to them"
	})
}

// bySettled is a clue that counts for what has settled only.
func bySettled(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if !e.Settled {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// backward fits if the answer to whether a gradient was computed is this one.
func backward(points int, is Answer, what string) clue {
	return answered(points, func(e *Evidence) Answer { return e.Backward }, is, what)
}

func answered(points int, asked func(*Evidence) Answer, is Answer, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if asked(e) == is {
			return what
		}
		return ""
	})
}

// together fits if as many stacks grow in step.
func together(points, least int) clue {
	return fixed(points, func(e *Evidence) string {
		if len(e.Sites) >= least {
			return fmt.Sprintf("%d stacks grow in step", len(e.Sites))
		}
		return ""
	})
}

// meter fits if this one grew.
func meter(m Meter, what string) clue {
	return need(fixed(Sure, func(e *Evidence) string {
		if e.Meter == m {
			return what
		}
		return ""
	}))
}

// bare fits if nobody saw the blocks' allocation.
func bare(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Frames) == 0 }) {
			return "their allocation was not recorded"
		}
		return ""
	})
}

// private fits if blocks lie in a private pool.
func private(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Private }) {
			return "they lie in a private pool"
		}
		return ""
	})
}

// heads fits if the answer to whether the program holds the graph's end is this
// one.
func heads(points int, is Answer, what string) clue {
	return answered(points, func(e *Evidence) Answer { return e.Head }, is, what)
}

// onHost fits if the sites are on the host, beside a device that is flat.
func onHost(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.Host {
			return "they are on the host's heap, and the device is flat"
		}
		return ""
	})
}

// programs fits if what becomes more are compiled programs.
func programs(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.Programs {
			return "they are compiled programs"
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
				return "backward makes a graph of its own, which holds them"
			}
		}
		return ""
	})
}
