package cause

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// holderNamed fits if a holder of the blocks has one of these names.
func holderNamed(points int, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if !isVariable(h) && names(holderWords(h.Path), terms) {
					return holds(h)
				}
			}
		}
		return ""
	})
}

// usersFunction fits if a function of the user's, specific to the sites, has one of these names.
func usersFunction(points int, terms ...string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			s := &e.Sites[i]
			for k, f := range s.Frames {
				if !s.library(k) && !s.common(k) && names(ownWords(f, false), terms) {
					return "they are allocated in " + place(f)
				}
			}
		}
		return ""
	})
}

// whereNoHolder is a clue that counts only if no holder was found.
func whereNoHolder(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// drained fits if this is the answer to whether the oldest blocks were freed.
func drained(points int, is Answer, what string) clue {
	return answered(points, func(e *Evidence) Answer { return e.Drained }, is, what)
}

// heldIn fits if the path of a holder ends so.
func heldIn(points int, end string) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if strings.HasSuffix(h.Path, end) {
					return holds(h)
				}
			}
		}
		return ""
	})
}

// isVariable reports whether a holder is a variable, which holds the last block and says nothing about the others.
func isVariable(h snapshot.Holder) bool {
	return h.Kind == "variable" && h.Items == 0 && !strings.Contains(h.Path, "[")
}

// returned fits if a list holds what a library's forward pass allocated, with no forward pass of the program's own:
// probably the model's output. A closure's list may belong to a hook, which sees all modules.
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
				return "a list holds the model's outputs"
			}
		}
		return ""
	})
}

// owned fits if these owner classes of the engine, and no others, hold blocks.
func owned(points int, by snapshot.Owners, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Owners == by }) {
			return what
		}
		return ""
	})
}

// partly fits if this owner class holds blocks, possibly among others.
func partly(points int, by snapshot.Owners, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if e.owners()&by == by {
			return what
		}
		return ""
	})
}

// held fits if a site's first holder, its longest container, is of one of these kinds. Python's kinds also count as
// lists and maps.
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

// general is the general kind of a Python kind: list or map.
func general(kind string) string {
	switch kind {
	case "dict", "cache":
		return "map"
	case "tuple", "set", "deque", "chain", "array", "array.array", "bytearray", "BytesIO", "StringIO":
		return "list"
	}
	return kind
}

func holds(h snapshot.Holder) string {
	if h.Kind == snapshot.Nodes {
		return fmt.Sprintf("%s is its end", h.Path)
	}
	if h.Kind == "graph" && h.Items > 0 {
		return fmt.Sprintf("the graphs in %s hold them", h.Path)
	}
	if h.Items > 0 {
		return fmt.Sprintf("the %s %s holds them", h.Kind, h.Path)
	}
	return h.Path + " holds them"
}

// byOwners is a clue for programs that record who owns their blocks, which are those that release them by hand.
func byOwners(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if e.owners() == 0 {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// onTape fits if the graph holds blocks, or owners are unknown.
func onTape() clue {
	return need(fixed(0, func(e *Evidence) string {
		if o := e.owners(); o != 0 && o&snapshot.OwnedByTape == 0 {
			return ""
		}
		return "the autograd graph may hold them"
	}))
}

// nameless fits if a graph holds blocks, and no name leads to it.
func nameless(points int) clue {
	return unnamed(points, "graph", "a graph without a name holds them")
}

// unnamed fits if a holder of this kind holds blocks, and no name leads to it.
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

// beside fits if native memory grows with objects that have no known holder.
func beside(points int, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.Native {
			return ""
		}
		return what
	})
}

// inGraph fits if the sites grow in step, like what a graph saves.
func inGraph(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.Graph {
			return ""
		}
		return "the stacks of a forward pass grow at the same rate, as tensors saved by a graph do"
	})
}

// withNodes fits if an autograd graph grows with the sites.
func withNodes(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.Nodes {
			return ""
		}
		return "each holds its autograd graph"
	})
}

// unheld fits if only the program's own references hold the blocks, and no holder was found for them.
func unheld(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.owners() != snapshot.OwnedByUser || slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return ""
		}
		return "the program has a reference, but nothing in its model holds them"
	})
}

// lost fits if nothing in the program can free the blocks.
func lost(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Lost }) {
			return "the program dropped its references to them without releasing them"
		}
		return ""
	})
}

// perObject fits if its own object holds each block, in one list or map of such objects: "ops[].result".
func perObject(points int) clue {
	return fixed(points, func(e *Evidence) string {
		for i := range e.Sites {
			for _, h := range e.Sites[i].Holders {
				if strings.Contains(h.Path, "[].") && strings.Count(h.Path, "[]") == 1 && int64(h.Items) >= e.Sites[i].Live {
					return fmt.Sprintf("each is held by its own object, %s", h.Path)
				}
			}
		}
		return ""
	})
}

// gathered fits if a container is known to hold at least half of the blocks, or one of several containers some: the
// program put them there, and no release was forgotten.
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

// keepsAll fits if a list, map or graph holds the blocks that grew most: it has at least half as many items as there
// are blocks, which it holds directly or with their graphs. On a language's heap, and for blocks of several stacks,
// an eighth is enough, since an item has several blocks. It also fits a container that has grown with the blocks,
// however many each item has: a model has a block for each weight.
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

// keptBy is how many of the sites have a holder with this path.
func (e *Evidence) keptBy(path string) (sites int) {
	for i := range e.Sites {
		if slices.ContainsFunc(e.Sites[i].Holders, func(h snapshot.Holder) bool { return h.Path == path }) {
			sites++
		}
	}
	return sites
}

// unlessKept is a clue that counts only if no container holds all the blocks (keepsAll).
func unlessKept(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if _, kept := keepsAll(1).weigh(e); kept != "" {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// heldBeside fits if a list or map with none of these names holds blocks.
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

// severalParts fits if each entry holds blocks of several stacks without a common graph, such as a frame of a
// traceback.
func severalParts(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if len(e.Sites) < 2 || e.Graph || e.owners()&snapshot.OwnedByTape != 0 {
			return ""
		}
		return fmt.Sprintf("each holds blocks of %d stacks", len(e.Sites))
	})
}

// uncollected fits if the blocks of a Python program have no known holder, and its cycle collector is off.
func uncollected(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !e.CollectorOff || slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return ""
		}
		return "the cycle collector is off, and no variable of the program leads to them"
	})
}
