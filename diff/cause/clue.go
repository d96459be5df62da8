package cause

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// clue is one fact in favour of a cause, or against it if its points are negative.
type clue struct {
	needed bool // without it the cause is excluded
	// weigh returns the points and what fits, in words; "" if it does not fit.
	weigh func(*Evidence) (points int, why string)
}

// need makes a clue necessary: without it the cause is excluded.
func need(c clue) clue {
	c.needed = true
	return c
}

// fixed is a clue with the same points whenever it fits.
func fixed(points int, fits func(*Evidence) string) clue {
	return clue{weigh: func(e *Evidence) (int, string) { return points, fits(e) }}
}

// named fits if a holder of the blocks, or a function that allocates them, has one of these names. A function gives
// points. A holder shows more of why blocks stay, and gives two more; the name of a user's file shows less, and gives
// two less.
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

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func (c clue) of(e *Evidence) bool {
	_, why := c.weigh(e)
	return why != ""
}

// anyOf is worth the sum of those of its clues that fit.
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

// both fits if two clues do, and has the points of the first.
func both(c, besides clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if _, why := besides.weigh(e); why == "" {
			return 0, ""
		}
		return c.weigh(e)
	}}
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

// shaped fits if the growth has one of these shapes.
func shaped(points int, what string, shapes ...Shape) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.Contains(shapes, e.Shape) {
			return what
		}
		return ""
	})
}

// upTo fits if new blocks have so many bytes at most, as Evidence.each counts. what has a place for the size.
func upTo(points int, most snapshot.Bytes, what string) clue {
	return between(points, 0, most, what)
}

// between is the same for more than least bytes.
func between(points int, least, most snapshot.Bytes, what string) clue {
	return fixed(points, func(e *Evidence) string {
		if each := e.each(); each > least && each <= most {
			return fmt.Sprintf(what, each)
		}
		return ""
	})
}

// notGo excludes a cause for Go, whose collector also frees cycles.
func notGo() clue {
	return need(fixed(0, func(e *Evidence) string {
		for i := range e.Sites {
			if slices.ContainsFunc(e.Sites[i].Frames, func(f snapshot.Frame) bool { return strings.HasSuffix(f.File, ".go") }) {
				return ""
			}
		}
		return "the program is not written in Go"
	}))
}

// bySettled is a clue that counts only for settled findings.
func bySettled(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if !e.Settled {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// backward fits if this is the answer to whether gradients were computed.
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

// together fits if at least this many stacks grow in step.
func together(points, least int) clue {
	return fixed(points, func(e *Evidence) string {
		if len(e.Sites) >= least {
			return fmt.Sprintf("%d stacks grow at the same rate", len(e.Sites))
		}
		return ""
	})
}

// meter fits if this meter grew.
func meter(m Meter, what string) clue {
	return need(fixed(Sure, func(e *Evidence) string {
		if e.Meter == m {
			return what
		}
		return ""
	}))
}

// bare fits if the allocation of no block was recorded.
func bare(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if !slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Frames) > 0 }) {
			return "their allocation was not recorded"
		}
		return ""
	})
}

// private fits if blocks are in a private pool.
func private(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return s.Private }) {
			return "they are in a private pool"
		}
		return ""
	})
}

// heads fits if this is the answer to whether the program holds the graph's end.
func heads(points int, is Answer, what string) clue {
	return answered(points, func(e *Evidence) Answer { return e.Head }, is, what)
}

// onHost fits if the sites are on the host, and another device does not grow.
func onHost(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.Host {
			return "they are on the host's heap, and the device is flat"
		}
		return ""
	})
}

// segments fits if the sites are named segments of shared memory.
func segments(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.Segments {
			return "they are shared memory segments that were not unlinked"
		}
		return ""
	})
}

// programs fits if the sites are compiled programs.
func programs(points int) clue {
	return fixed(points, func(e *Evidence) string {
		if e.Programs {
			return "they are compiled programs"
		}
		return ""
	})
}
