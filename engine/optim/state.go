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
	counted    bool     // whether the steps of a parameter matter
	parameters []*engine.Tensor
	slots      map[*engine.Tensor]*slot
	steps      *engine.Tensor // int32 [parameters], for State; nil until it is asked for
}

// slot is the state of one parameter.
type slot struct {
	tensors []*engine.Tensor // one of each kind
	steps   int32
}

func newState(o engine.Ops, parameters []*engine.Tensor, counted bool, kinds ...string) state {
	s := state{ops: o.Valid(), kinds: kinds, counted: counted, slots: make(map[*engine.Tensor]*slot)}
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
	if s.steps != nil {
		s.steps.Release()
		s.steps = nil
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
			s.own(p, 0, zeros...)
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
func (s *state) own(p *engine.Tensor, steps int32, tensors ...*engine.Tensor) {
	for _, t := range tensors {
		t.Own(snapshot.OwnedByOptim)
	}
	s.slots[p] = &slot{tensors: tensors, steps: steps}
}

// State lists the state of the parameters that have one, in their order, named
// by the parameter's place and the tensor's kind: "3.velocity". An optimizer that
// counts steps adds "steps", int32 [parameters], which holds the count of this
// moment. The tensors stay the optimizer's, and the next Step writes to them.
func (s *state) State() []engine.Named {
	var all []engine.Named
	steps := make([]int32, len(s.parameters))
	for i, p := range s.parameters {
		have, ok := s.slots[p]
		if !ok {
			continue
		}
		steps[i] = have.steps
		for k, kind := range s.kinds {
			all = append(all, engine.Named{Name: name(i, kind), Tensor: have.tensors[k]})
		}
	}
	if s.counted && len(all) > 0 {
		s.scoped(func() { s.writeSteps(steps) })
		all = append(all, engine.Named{Name: "steps", Tensor: s.steps})
	}
	return all
}

func (s *state) writeSteps(steps []int32) {
	now := s.ops.FromInts(steps, len(steps))
	if s.steps != nil && s.steps.Shape() == now.Shape() {
		s.ops.Assign(s.steps, now)
		return
	}
	if s.steps != nil {
		s.steps.Release()
	}
	s.steps = now.Own(snapshot.OwnedByOptim)
}

func name(i int, kind string) string { return fmt.Sprintf("%d.%s", i, kind) }

// Load takes over the values of what State once listed, for as many parameters of
// the same shapes in the same order. State that the list lacks is released. The
// tensors stay the caller's. An error names the tensor at fault and leaves the
// state as it was, unless it is that the device is full.
func (s *state) Load(saved []engine.Named) (err error) {
	byName := make(map[string]*engine.Tensor, len(saved))
	for _, n := range saved {
		if _, twice := byName[n.Name]; twice {
			return fmt.Errorf("optimizer state: %s occurs twice", n.Name)
		}
		byName[n.Name] = n.Tensor
	}
	return engine.Run(s.ops, func(*engine.Scope) error {
		steps, err := s.loadSteps(byName)
		if err != nil {
			return err
		}
		found, err := s.match(byName)
		if err != nil {
			return err
		}
		for i, p := range s.parameters {
			s.take(p, found[i], steps[i])
		}
		return nil
	})
}

// loadSteps takes the counts out of what was saved.
func (s *state) loadSteps(byName map[string]*engine.Tensor) ([]int32, error) {
	if !s.counted || len(byName) == 0 {
		return make([]int32, len(s.parameters)), nil
	}
	t, ok := byName["steps"]
	if !ok || t.DType() != engine.Int32 || t.Shape() != engine.ShapeOf(len(s.parameters)) {
		return nil, fmt.Errorf("optimizer state: steps, int32 [%d], is needed", len(s.parameters))
	}
	delete(byName, "steps")
	return s.ops.Ints(t), nil
}

// match finds the tensors of each parameter, all kinds or none, and wants every
// one that was saved to be found.
func (s *state) match(byName map[string]*engine.Tensor) ([][]*engine.Tensor, error) {
	found := make([][]*engine.Tensor, len(s.parameters))
	for i, p := range s.parameters {
		for _, kind := range s.kinds {
			t, ok := byName[name(i, kind)]
			if !ok {
				continue
			}
			if t.DType() != engine.Float32 || t.Shape() != p.Shape() {
				return nil, fmt.Errorf("optimizer state: %s is %v, its parameter %v", name(i, kind), t, p)
			}
			found[i] = append(found[i], t)
			delete(byName, name(i, kind))
		}
		if n := len(found[i]); n != 0 && n != len(s.kinds) {
			return nil, fmt.Errorf("optimizer state: parameter %d has %d of %v", i, n, s.kinds)
		}
	}
	for name := range byName {
		return nil, fmt.Errorf("optimizer state: %s belongs to none of %d parameters with %v", name, len(s.parameters), s.kinds)
	}
	return found, nil
}

// take copies values into a parameter's slot.
func (s *state) take(p *engine.Tensor, values []*engine.Tensor, steps int32) {
	have, ok := s.slots[p]
	switch {
	case values == nil:
		s.drop(p)
	case ok:
		for k, t := range values {
			s.ops.Assign(have.tensors[k], t)
		}
		have.steps = steps
	default:
		var own []*engine.Tensor
		for _, t := range values {
			own = append(own, s.ops.Copy(t))
		}
		s.own(p, steps, own...)
	}
}
