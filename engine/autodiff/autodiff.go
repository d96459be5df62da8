// Package autodiff makes any engine.Ops differentiable in reverse mode.
//
// The graph is owned by its outputs: a tensor holds its node, a node its inputs'
// nodes and what it saved, and nothing else refers to them. Dropping an output
// drops its chain; there is no registry to clean. Package registry has a tape
// that works the other way, as Burn's does.
package autodiff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// Ops decorates another Ops: results that depend on a tracked tensor record how
// they came about. Computing without a gradient is computing with Valid(), or
// inside NoGrad.
type Ops struct {
	inner engine.Ops
	tape  Tape
	last  uint64 // order of the newest node
	quiet int    // how many NoGrad are open

	segment *segment // of the Checkpoint under way
	replay  *segment // that backward runs again
	forward hooks[func(op string, out *engine.Tensor)]
}

var _ engine.Ops = (*Ops)(nil)

// New returns the differentiable operations around inner.
func New(inner engine.Ops) *Ops { return NewOn(inner, &graph{}) }

// NewOn is New with another tape than the graph that its outputs own.
func NewOn(inner engine.Ops, t Tape) *Ops { return &Ops{inner: inner, tape: t} }

// Track makes leaves of tensors: Backward gathers a gradient in each. It panics
// with an *engine.Error on the result of a recorded operation, and on int32, which
// has no gradient; one that is tracked already stays as it is.
func (o *Ops) Track(ts ...*engine.Tensor) {
	engine.Check("track", ts...)
	for _, t := range ts {
		switch n := nodeOf(t); {
		case t.DType() != engine.Float32:
			panic(&engine.Error{Op: "track", Shapes: []engine.Shape{t.Shape()}, Reason: fmt.Sprintf("a tensor of float32 is needed, this one is %s", t.DType())})
		case n == nil:
			o.attach(t, &Node{op: "leaf"})
		case n.backward != nil:
			panic(&engine.Error{Op: "track", Shapes: []engine.Shape{t.Shape()}, Reason: "the tensor is the result of " + n.op + "; Detach it first"})
		}
	}
}

// Untrack makes plain tensors of leaves and releases their gradients.
func (o *Ops) Untrack(ts ...*engine.Tensor) {
	for _, t := range ts {
		if n := nodeOf(t); n != nil && n.backward == nil {
			t.Attach(nil)
		}
	}
}

// NoGrad runs f with nothing recorded, whichever tensors it computes with. Calls
// may nest.
func (o *Ops) NoGrad(f func()) {
	o.quiet++
	defer func() { o.quiet-- }()
	f()
}

// Recording reports whether operations on tracked tensors are recorded now: not in
// NoGrad, nor in a Backward that is not to be differentiated.
func (o *Ops) Recording() bool { return o.quiet == 0 }

// Nodes counts the nodes that the tape still holds, leaves included.
func (o *Ops) Nodes() int { return o.tape.Nodes() }

// Tracked reports whether operations on the tensor are recorded.
func Tracked(t *engine.Tensor) bool { return nodeOf(t) != nil }

// tracked reports whether any operand has a node: only then is there something
// to record.
func (o *Ops) tracked(ts ...*engine.Tensor) bool {
	return o.quiet == 0 && slices.ContainsFunc(ts, Tracked)
}

// Grad returns the gradient gathered in a leaf, or in a result after RetainGrad;
// nil where there is none. It belongs to the tensor: it is valid until ZeroGrad,
// and Backward adds to it in place.
func Grad(t *engine.Tensor) *engine.Tensor {
	if t == nil {
		panic(&engine.Error{Op: "grad", Reason: "the tensor is nil"})
	}
	if n := nodeOf(t); n != nil {
		return n.grad
	}
	return nil
}

// ZeroGrad releases gradients. The memory is given back, not cleared, so that a
// gradient is live between its Backward and its use only.
func ZeroGrad(ts ...*engine.Tensor) {
	for _, t := range ts {
		if n := nodeOf(t); n != nil {
			n.DropGrad()
		}
	}
}

// ClearGrad writes zeros into gradients and keeps their blocks: a step's peak is
// then as high as with ZeroGrad or higher, but the blocks stay where they are.
func (o *Ops) ClearGrad(ts ...*engine.Tensor) {
	s := o.inner.Begin()
	defer s.End()
	zero := o.inner.Full(0)
	for _, t := range ts {
		if g := Grad(t); g != nil {
			o.inner.Assign(g, zero)
		}
	}
}
