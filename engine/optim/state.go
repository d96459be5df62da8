// Package optim holds optimizers: they turn gradients into new parameters.
//
// An optimizer's state belongs to parameters by identity: it is made for each when
// its first gradient comes, as PyTorch does it, written in place from then on, and
// released by Forget or Release. Its blocks are owned by the optimizer, in the
// sense of snapshot.OwnedByOptim.
package optim

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// state is what all optimizers of this package have in common: parameters, and
// for each some tensors of its shape.
type state struct {
	ops        engine.Ops
	kinds      []string // the names of a parameter's tensors
	parameters []*engine.Tensor
	slots      map[*engine.Tensor]*slot
}

// slot is the state of one parameter.
type slot struct {
	tensors []*engine.Tensor // one of each kind
	steps   int32
}

func newState(o engine.Ops, parameters []*engine.Tensor, kinds ...string) state {
	s := state{ops: o.Valid(), kinds: kinds, slots: make(map[*engine.Tensor]*slot)}
	s.Add(parameters...)
	return s
}

// Add takes parameters up, after those that are there. One that is there already
// stays where it is.
func (s *state) Add(parameters ...*engine.Tensor) {
	for _, p := range parameters {
		if !slices.Contains(s.parameters, p) {
			s.parameters = append(s.parameters, p)
		}
	}
}

// Forget lets parameters go and releases their state. One that is replaced by
// another tensor is to be forgotten, since its state lives on otherwise.
func (s *state) Forget(parameters ...*engine.Tensor) {
	for _, p := range parameters {
		s.parameters = slices.DeleteFunc(s.parameters, func(q *engine.Tensor) bool { return p == q })
		s.drop(p)
	}
}

func (s *state) drop(p *engine.Tensor) {
	if have, ok := s.slots[p]; ok {
		release(have.tensors...)
		delete(s.slots, p)
	}
}

// Release gives all state back. A later Step makes it anew.
func (s *state) Release() {
	for p := range s.slots {
		s.drop(p)
	}
}

func release(tensors ...*engine.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
}

// reserve makes the state of every parameter that has a gradient and no state
// yet, of zeros. A step calls it before it moves anything, as PyTorch does: a
// device that is too full for the state is noticed while nothing has changed.
func (s *state) reserve() {
	for _, p := range s.parameters {
		if _, ok := s.slots[p]; ok || autodiff.Grad(p) == nil {
			continue
		}
		s.scoped(func() {
			zeros := make([]*engine.Tensor, len(s.kinds))
			for k := range zeros {
				zeros[k] = s.ops.Full(0, p.Shape().Slice()...)
			}
			s.own(p, zeros...)
		})
	}
}

// each calls move for every parameter that has a gradient, in a scope of its
// own, and releases the gradient. move writes when it has all memory that it
// needs: if it panics, its parameter and those after have their gradients still,
// and a further step takes these alone.
func (s *state) each(move func(p, gradient *engine.Tensor)) {
	for _, p := range s.parameters {
		if g := autodiff.Grad(p); g != nil {
			s.scoped(func() { move(p, g) })
			autodiff.ZeroGrad(p)
		}
	}
}

func (s *state) scoped(f func()) { engine.Within(s.ops, f) }

// own makes a parameter's slot of fresh tensors, one of each kind.
func (s *state) own(p *engine.Tensor, tensors ...*engine.Tensor) {
	for _, t := range tensors {
		t.Own(snapshot.OwnedByOptim)
	}
	s.slots[p] = &slot{tensors: tensors}
}

// State lists the state of the parameters that have one, in their order, named
// by the parameter's place and the tensor's kind: "3.velocity". The tensors stay
// the optimizer's, and the next Step writes to them.
func (s *state) State() []engine.Named {
	var all []engine.Named
	for i, p := range s.parameters {
		if have, ok := s.slots[p]; ok {
			for k, kind := range s.kinds {
				all = append(all, engine.Named{Name: fmt.Sprintf("%d.%s", i, kind), Tensor: have.tensors[k]})
			}
		}
	}
	return all
}
