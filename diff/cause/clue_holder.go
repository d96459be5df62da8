package cause

import (
	"slices"
	"strings"
)

// holderNamed fits if what the blocks hang on bears one of these names.
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

// usersFunction fits if a function of the user's that says something of the sites bears
// one of these names.
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

// whereNoHolder is a clue that counts where nobody found what holds the blocks.
func whereNoHolder(c clue) clue {
	return clue{weigh: func(e *Evidence) (int, string) {
		if slices.ContainsFunc(e.Sites, func(s Site) bool { return len(s.Holders) > 0 }) {
			return 0, ""
		}
		return c.weigh(e)
	}}
}

// drained fits if the answer to whether the oldest blocks are gone is this one.
func drained(points int, is Answer, what string) clue {
	return answered(points, func(e *Evidence) Answer { return e.Drained }, is, what)
}

// heldIn fits if the path of a holder ends in this.
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
