package autodiff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Node is one recorded operation, or a leaf. A tape holds it; what it saved is
// device memory, so it is given back on purpose, by Free.
type Node struct {
	op     string
	order  uint64  // larger than any input's order
	inputs []*Node // nil for operands that no gradient goes to
	saved  []saved
	// backward is nil for a leaf. It captures shapes and numbers, never tensors:
	// those are saved, so that they are counted.
	backward func(*pass)
	site     mem.SiteID // where the operation was called
	history  engine.History
	spent    bool // gradients went through, and what was saved is gone

	segment *segment // that has saved instead, if any
	slot    int

	grad *engine.Tensor // of a leaf

	// References, counted where the outputs own the graph.
	owner *graph
	refs  int
	walk  *walk // the last that came by

	// Room for what most operations have, to spare two allocations for each.
	twoInputs [2]*Node
	twoSaved  [2]saved
}

// saved is a tensor that backward reads. Its handle has no history: an output
// that held its own node would never go.
type saved struct {
	tensor *engine.Tensor // nil where backward does not need it, or while a segment has it
	writes uint32         // to its block, when it was saved
	source int            // the input that it is, or one of those below
}

// Sources of saved tensors that are no input.
const (
	fromOutput = -1
	fromNone   = -2
)

// nodeOf returns the node of a tensor; nil where it has none.
func nodeOf(t *engine.Tensor) *Node {
	switch h := t.History().(type) {
	case *Node:
		return h
	case interface{ node() *Node }: // the history of another tape, around a node
		return h.node()
	}
	return nil
}

func (n *Node) node() *Node { return n }

// Op names the operation, "leaf" for a leaf.
func (n *Node) Op() string { return n.op }

// Leaf reports whether gradients end here.
func (n *Node) Leaf() bool { return n.backward == nil }

// Inputs lists the nodes of the operands; nil for one that no gradient goes to.
// It is empty for a leaf, and after Free.
func (n *Node) Inputs() []*Node { return n.inputs }

// History is what the tape's Hold returned.
func (n *Node) History() engine.History { return n.history }

// Saved lists the blocks that the node holds for backward, each as often as it
// saved it.
func (n *Node) Saved() []*mem.Storage {
	var blocks []*mem.Storage
	for _, s := range n.saved {
		if s.tensor != nil {
			blocks = append(blocks, s.tensor.Storage())
		}
	}
	return blocks
}

// Free releases what the node saved. Its inputs are forgotten.
func (n *Node) Free() {
	defer n.forget()
	n.freeSaved(0)
}

// freeSaved releases what was saved, from one on. A panic, because a Function has
// released what it had saved, goes on when the rest is released.
func (n *Node) freeSaved(from int) {
	defer func() {
		if from < len(n.saved) {
			n.freeSaved(from)
		}
	}()
	for from < len(n.saved) {
		i := from
		from++
		if t := n.saved[i].tensor; t != nil {
			t.Release()
		} else if n.segment != nil {
			n.segment.drop(n.slot + i)
		}
	}
}

func (n *Node) forget() {
	if n.segment != nil {
		n.segment.release()
		n.segment = nil
	}
	n.saved, n.inputs, n.spent = nil, nil, true
	n.twoInputs, n.twoSaved = [2]*Node{}, [2]saved{}
}

// DropGrad releases the gradient, if there is one. A tape calls it when no
// tensor is left that could be asked for it.
func (n *Node) DropGrad() {
	if g := n.grad; g != nil {
		n.grad = nil
		g.Release()
	}
}

// save keeps handles on tensors for the tape, and notes which of them the
// operation's inputs are, and which its output.
func (n *Node) save(tensors, inputs []*engine.Tensor, out *engine.Tensor, handles bool) {
	n.saved = n.twoSaved[:0]
	for _, t := range tensors {
		s := saved{source: fromNone}
		if t != nil {
			s.writes = t.Storage().Writes()
			if t == out {
				s.source = fromOutput
			} else if i := slices.Index(inputs, t); i >= 0 {
				s.source = i
			}
			if handles {
				s.tensor = t.Share(snapshot.OwnedByTape)
			}
		}
		n.saved = append(n.saved, s)
	}
}

// overwritten is an error if a saved tensor holds something else by now than what
// backward needs.
func (n *Node) overwritten(d *mem.Device) error {
	for _, s := range n.saved {
		if s.tensor != nil && s.tensor.Storage().Writes() != s.writes {
			return writtenError(d, n, s.tensor)
		}
	}
	if n.segment != nil {
		for _, s := range n.segment.inputs {
			if s.tensor.Storage().Writes() != s.writes {
				return writtenError(d, n, s.tensor)
			}
		}
	}
	return nil
}

func writtenError(d *mem.Device, n *Node, t *engine.Tensor) error {
	return fmt.Errorf("backward: %s, called by %s, saved %v, and Assign has written to its block since; run Backward before, or give the operation a Copy",
		n.op, mem.Headline(d.Stack(n.site)), t)
}
