package autodiff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// StopAtNonFinite sets the policy for numbers that went wrong. While it is on,
// the first operation that makes a NaN or an infinity of finite operands, forward
// or backward, panics with an *engine.Error around a *NonFiniteError. Each
// operation then waits for the device and makes a copy of its result: it is for
// looking for a fault, not for training.
func (o *Ops) StopAtNonFinite(on bool) { o.finite = on }

// NonFiniteError is a NaN or an infinity that came out of finite operands.
type NonFiniteError struct {
	Op       string
	Backward bool             // the operation's backward made it, not its result
	Shapes   []engine.Shape   // of the operands; in backward of the gradient and of what was saved
	Stack    []snapshot.Frame // of the operation's call, innermost frame first
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("a NaN or an infinity came out of finite operands; it was called by %s", mem.Headline(e.Stack))
}

// checkForward panics if out is not finite and the inputs are.
func (o *Ops) checkForward(op string, out *engine.Tensor, inputs []*engine.Tensor) {
	if finite(o.inner, out) || !allFinite(o.inner, inputs) {
		return
	}
	e := &NonFiniteError{Op: op, Shapes: shapesOf(inputs), Stack: o.inner.Device().Stack(o.inner.Device().Site())}
	panic(&engine.Error{Op: op, Shapes: e.Shapes, Err: e})
}

// checkBackward panics if a gradient that the node makes is not finite, and what
// it makes it of is.
func (p *pass) checkBackward(g *engine.Tensor) {
	o := p.decorator
	operands := append([]*engine.Tensor{p.grad}, p.saved...)
	operands = slices.DeleteFunc(operands, func(t *engine.Tensor) bool { return t == nil })
	if finite(o.inner, g) || !allFinite(o.inner, operands) {
		return
	}
	e := &NonFiniteError{Op: p.node.op, Backward: true, Shapes: shapesOf(operands), Stack: o.inner.Device().Stack(p.node.site)}
	panic(&engine.Error{Op: "backward of " + p.node.op, Shapes: e.Shapes, Err: e})
}

func allFinite(o engine.Ops, ts []*engine.Tensor) bool {
	return !slices.ContainsFunc(ts, func(t *engine.Tensor) bool { return !finite(o, t) })
}

// finite reports whether all elements are: 0 times any other is NaN.
func finite(o engine.Ops, t *engine.Tensor) bool {
	if t.DType() != engine.Float32 {
		return true
	}
	s := o.Begin()
	defer s.End()
	return o.Floats(o.Sum(o.Mul(t, o.Full(0))))[0] == 0
}

func shapesOf(ts []*engine.Tensor) []engine.Shape {
	shapes := make([]engine.Shape, len(ts))
	for i, t := range ts {
		shapes[i] = t.Shape()
	}
	return shapes
}
