// Package nn holds layers: plain structs of parameters with a Forward each.
//
// Parameters join the innermost scope when they are made, as all tensors do, so
// that a model that does not fit its device leaves nothing behind. Keep takes the
// finished model's out.
package nn

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// Module is anything with parameters. Forward is not part of it: layers differ in
// what goes in and out.
type Module interface {
	// Parameters lists the trainable tensors, always in the same order.
	Parameters() []*engine.Tensor
}

// Stateful is a module that names everything it needs to compute the same again:
// its parameters, and tensors that are not trained, such as running statistics.
// All layers of this package are; a module made of them says so with Parts. One
// that does not, but holds such tensors, loses them with the scope that they were
// made in.
type Stateful interface {
	Module
	// State lists parameters and other tensors, always in the same order.
	State() []engine.Named
}

// Part is a module inside another, under the name that its state goes by.
type Part struct {
	Name   string
	Module Stateful
}

// Parts makes a Stateful of several: a module made of layers hands Parameters and
// State on to its own. Parts may share a tensor, such as tied weights.
type Parts []Part

// Parameters lists those of all parts, in order. One that several parts share
// comes once, where it comes first.
func (p Parts) Parameters() []*engine.Tensor {
	var all []*engine.Tensor
	for _, part := range p {
		all = append(all, part.Module.Parameters()...)
	}
	return once(all)
}

// State lists the state of all parts, in order, each name led by its part's. What
// several parts share comes under each of their names.
func (p Parts) State() []engine.Named {
	var all []engine.Named
	for _, part := range p {
		for _, s := range part.Module.State() {
			all = append(all, engine.Named{Name: part.Name + "." + s.Name, Tensor: s.Tensor})
		}
	}
	return all
}

// Parameters lists those of several modules, in order. One that several of them
// share comes once, where it comes first.
func Parameters(modules ...Module) []*engine.Tensor {
	var all []*engine.Tensor
	for _, m := range modules {
		all = append(all, m.Parameters()...)
	}
	return once(all)
}

// once drops what a list has had before.
func once(tensors []*engine.Tensor) []*engine.Tensor {
	seen := make(map[*engine.Tensor]bool, len(tensors))
	return slices.DeleteFunc(tensors, func(t *engine.Tensor) bool {
		had := seen[t]
		seen[t] = true
		return had
	})
}

// Keep takes a module's tensors out of their scopes: the caller owes a Release.
// They are the State of one that is Stateful, else the Parameters.
func Keep(m Module) {
	for _, t := range held(m) {
		t.Keep()
	}
}

// Release gives a module's tensors back, with the gradients in them.
func Release(m Module) {
	for _, t := range held(m) {
		t.Release()
	}
}

func held(m Module) []*engine.Tensor {
	s, ok := m.(Stateful)
	if !ok {
		return once(slices.Clone(m.Parameters())) // the list is the module's
	}
	var all []*engine.Tensor
	for _, n := range s.State() {
		all = append(all, n.Tensor)
	}
	return once(all)
}

// Mode says what a forward pass is for. Layers that differ take it as an
// argument, so that none is left in the wrong one.
type Mode uint8

// The modes. Eval is what a finished model computes, the same each time.
const (
	Eval Mode = iota
	Train
)

// uniform draws from [-bound, bound).
func uniform(o engine.Ops, r *engine.Random, bound float64, dims ...int) *engine.Tensor {
	return engine.Tidy(o, func() *engine.Tensor {
		return engine.Scale(o, engine.Shift(o, o.Rand(r.Draw(), dims...), -0.5), float32(2*bound))
	})
}

// lecun is the bound of a uniform draw under which a layer's output has its
// input's variance (LeCun et al. 1998).
func lecun(fanIn int) float64 { return math.Sqrt(3 / float64(fanIn)) }

// misuse panics with what a layer was given and what it needs.
func misuse(op, reason string, operands ...*engine.Tensor) {
	e := &engine.Error{Op: op, Reason: reason}
	for _, t := range operands {
		e.Shapes = append(e.Shapes, t.Shape())
	}
	panic(e)
}
