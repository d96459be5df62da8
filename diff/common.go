package diff

import (
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// pages counts memory that processes share, by process and moment.
type pages map[pagesOf]float64

type pagesOf struct {
	pid  int
	time time.Time
}

// PrivateBytes returns the private memory of each process of a tree at each look: its anonymous and swapped pages. A
// page that a fork shares counts for the process that forked, if the kernel reported it.
func PrivateBytes(tree *snapshot.Tree) [][]snapshot.Bytes {
	private := commonPages(tree)
	for i := range tree.Processes {
		for k := range tree.Processes[i].Points {
			at := &tree.Processes[i].Points[k]
			private[i][k] = at.Swapped + max(0, at.Anonymous-private[i][k])
		}
	}
	return private
}

// commonPages returns, at each look at each process of a tree, the memory that it shares with the process that forked
// it. That memory counts for the parent alone: each page counts once, and a parent does not shrink when it forks. It
// is known from the looks at which the kernel added up pages, and assumed constant between them. A process that ended
// before the first such look gets the value of others of its role, or else all that it began with. It is 0 throughout
// if the kernel never reported it.
func commonPages(tree *snapshot.Tree) [][]snapshot.Bytes {
	ofOthers := make(pages)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		for k := range p.Points {
			if at := &p.Points[k]; at.OfOthers >= 0 {
				ofOthers[pagesOf{p.PID, at.Time}] = float64(at.OfOthers)
			}
		}
	}
	// A page adds equally to OfOthers of each process that has it.
	above := func(i int, at *snapshot.ProcessPoint) float64 {
		parent, ok := ofOthers[pagesOf{tree.Processes[i].Parent, at.Time}]
		switch {
		case i == 0:
			return 0 // its parent is outside the tree
		case !ok:
			return float64(at.OfOthers)
		}
		return min(parent, float64(at.OfOthers))
	}
	ofChildren := make(pages)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		for k := range p.Points {
			if at := &p.Points[k]; at.OfOthers >= 0 {
				ofChildren[pagesOf{p.Parent, at.Time}] += above(i, at)
			}
		}
	}
	common, ofRole := make([][]snapshot.Bytes, len(tree.Processes)), make(map[string]snapshot.Bytes)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		common[i] = make([]snapshot.Bytes, len(p.Points))
		role := KindOf(p.Role)
		now, known := ofRole[role]
		if !known && len(ofOthers) > 0 {
			now = p.Points[0].Anonymous
		}
		asked := false
		for k := range p.Points {
			at := &p.Points[k]
			if at.OfOthers >= 0 {
				has, parent := above(i, at), pagesOf{p.Parent, at.Time}
				if has > 0 {
					has += has * ofOthers[parent] / ofChildren[parent]
				}
				now = snapshot.Bytes(has)
				if !asked {
					for before := range k {
						common[i][before] = now
					}
				}
				ofRole[role], asked = now, true
			}
			common[i][k] = now
		}
	}
	return common
}
