// Package category finds the use of live blocks: parameters, gradients, activations and so on.
package category

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Of is the category of each row of s.Blocks; nil if none is known. The producer's categories count first, then the owners in memdiag's
// engine, and for PyTorch's tensors the stack that allocated them. A block without any of these has no category.
func Of(s *snapshot.Snapshot) []snapshot.Category {
	b := &s.Blocks
	out := make([]snapshot.Category, b.Len())
	copy(out, b.Category)
	for row := range out {
		if out[row] == snapshot.NoCategory && b.Owners != nil {
			out[row] = b.Owners[row].CategoryOf()
		}
	}
	if strings.HasPrefix(s.Producer, "PyTorch") {
		newStacks(s).fill(s, out)
	}
	for row, state := range b.State {
		if state != snapshot.Live {
			out[row] = snapshot.NoCategory
		}
	}
	if !slices.ContainsFunc(out, func(c snapshot.Category) bool { return c != snapshot.NoCategory }) {
		return nil
	}
	return out
}

// OfTensors reports whether a device's blocks are tensors'.
func OfTensors(d snapshot.Device) bool {
	return d.Kind != snapshot.Process && d.Kind != snapshot.Executable && (d.Kind == snapshot.CPU || !d.Kind.InProcess())
}

// stacks finds the use of PyTorch's blocks by their stacks.
type stacks struct {
	table  *snapshot.Stacks
	phases []phase // by stack, plus one; 0 if not looked up yet
	graph  map[snapshot.StackID]bool
	// known are categories for which the recorder lists all blocks, from the model and its optimizers: other blocks are not in them.
	known [snapshot.Categories]bool
}

func newStacks(s *snapshot.Snapshot) *stacks {
	k := &stacks{table: s.Stacks, phases: make([]phase, s.Stacks.Len()), graph: make(map[snapshot.StackID]bool)}
	if s.Moment == nil { // the recorder named what was live at the end
		for _, c := range s.Blocks.Category {
			k.known[c] = c != snapshot.Activation
		}
	}
	for _, h := range s.Holders {
		if h.Kind == "graph" && h.Stack != snapshot.NoStack {
			k.graph[h.Stack] = true
		}
	}
	return k
}

func (k *stacks) phase(stack snapshot.StackID) phase {
	if k.phases[stack] == 0 {
		k.phases[stack] = 1 + phaseOf(k.table.Frames(stack))
	}
	return k.phases[stack] - 1
}

func (k *stacks) fill(s *snapshot.Snapshot, out []snapshot.Category) {
	b := &s.Blocks
	for row := range out {
		if out[row] == snapshot.NoCategory && b.Stack[row] != snapshot.NoStack && OfTensors(s.Devices[s.Segments[b.Segment[row]].Device]) {
			out[row] = k.category(b.Stack[row])
		}
	}
}

// category is what a live block of a stack is for.
func (k *stacks) category(stack snapshot.StackID) snapshot.Category {
	p := k.phase(stack)
	switch {
	case p == loading:
		return snapshot.Input
	case p == scratch:
		return snapshot.Workspace
	case p == exchanging:
		return snapshot.Collective
	case k.graph[stack]:
		return snapshot.Activation
	}
	c := map[phase]snapshot.Category{
		building: snapshot.Parameter, forward: snapshot.Activation, backward: snapshot.Gradient, updating: snapshot.OptimizerState,
	}[p]
	if k.known[c] {
		return snapshot.NoCategory
	}
	return c
}
