package diff

import (
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// callTree has the stacks of rows that leak, outermost call first, and for each call the healthy rows that come
// through it.
type callTree struct {
	roots map[series.DeviceID]*callNode
	// byOrigin: the healthy rows by the user's innermost frame.
	byOrigin map[snapshot.Frame][]*Row
}

type callNode struct {
	children map[snapshot.Frame]*callNode
	healthy  []*Row // rows that come through here and do not leak
}

// call is one call in its context. For blocks of the autograd graph, all calls of a function are one, and its frame
// has line 0.
type call struct {
	under *callNode
	frame snapshot.Frame
}

// newCallTree returns the tree of leaking and healthy rows. Rows without frames have no calls.
func newCallTree(leaking, healthy []*Row) *callTree {
	t := &callTree{roots: make(map[series.DeviceID]*callNode), byOrigin: make(map[snapshot.Frame][]*Row)}
	for _, row := range leaking {
		n := t.roots[row.On()]
		if n == nil {
			n = &callNode{}
			t.roots[row.On()] = n
		}
		for i := len(row.Frames) - 1; i >= 0; i-- {
			child := n.children[row.Frames[i]]
			if child == nil {
				if n.children == nil {
					n.children = make(map[snapshot.Frame]*callNode)
				}
				child = &callNode{}
				n.children[row.Frames[i]] = child
			}
			n = child
		}
	}
	for _, row := range healthy {
		n := t.roots[row.On()]
		for i := len(row.Frames) - 1; i >= 0 && n != nil; i-- {
			if n = n.children[row.Frames[i]]; n != nil {
				n.healthy = append(n.healthy, row)
			}
		}
		if i := frame.Headline(row.Frames); i >= 0 {
			t.byOrigin[row.Frames[i]] = append(t.byOrigin[row.Frames[i]], row)
		}
	}
	return t
}

// outside is the node just outside of the leaking row's frame i.
func (t *callTree) outside(row *Row, i int) *callNode {
	n := t.roots[row.On()]
	for at := len(row.Frames) - 1; at > i; at-- {
		n = n.children[row.Frames[at]]
	}
	return n
}

// ownFrame is the index of the leaking row's outermost call of the user's through which no healthy row comes; -1 for
// none. The main function of a native program does not count: everything comes through it, and its few live rows may
// all leak.
func (t *callTree) ownFrame(row *Row) int {
	n := t.roots[row.On()]
	own := frame.Own(row.Frames)
	for i := len(row.Frames) - 1; i >= 0; i-- {
		n = n.children[row.Frames[i]]
		if len(n.healthy) == 0 && own(row.Frames[i]) && !frame.IsNativeMain(row.Frames[i]) {
			return i
		}
	}
	return -1
}

// ownCall is the call at ownFrame.
func (t *callTree) ownCall(row *Row) (call, bool) {
	i := t.ownFrame(row)
	if i < 0 {
		return call{}, false
	}
	c := call{t.outside(row, i), row.Frames[i]}
	if row.Owners&snapshot.OwnedByTape != 0 {
		c.frame.Line = 0
	}
	return c, true
}
