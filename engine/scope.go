package engine

import "errors"

// Scope owns the tensors that operations make while it is the innermost open
// one, and releases them at its end: what a step computes on the way is gone
// when the step is, whichever way it ends.
type Scope struct {
	scopes  *scopes
	parent  *Scope
	tensors []*Tensor // nil where one left early
	ended   bool
}

// scopes is the stack of open scopes of one Eager.
type scopes struct {
	open *Scope
	// spare is the list of an ended scope, used again by the next.
	spare []*Tensor
}

func (s *scopes) begin() *Scope {
	scope := &Scope{scopes: s, parent: s.open, tensors: s.spare[:0]}
	s.spare = nil
	s.open = scope
	return scope
}

// add puts a new tensor in the innermost scope; without one, the caller of the
// operation owns it.
func (s *scopes) add(t *Tensor) {
	if s.open == nil {
		t.watch()
		return
	}
	t.scope, t.slot = s.open, len(s.open.tensors)
	s.open.tensors = append(s.open.tensors, t)
}

// leave takes the tensor out of its scope, if it is in one.
func (t *Tensor) leave() {
	if t.scope != nil {
		t.scope.tensors[t.slot] = nil
		t.scope = nil
	}
}

// Keep moves a tensor out of the scope: the caller owes its Release. It is
// Tensor.Keep, for code that reads better naming the scope.
func (s *Scope) Keep(t *Tensor) *Tensor { return t.Keep() }

// End releases the scope's tensors, last made first, and those of scopes opened
// inside it that are still open. A second End does nothing.
func (s *Scope) End() {
	if s.ended {
		return
	}
	for inner := s.scopes.open; inner != s; inner = s.scopes.open {
		inner.end()
	}
	s.end()
}

func (s *Scope) end() {
	for i := len(s.tensors) - 1; i >= 0; i-- {
		if t := s.tensors[i]; t != nil {
			t.leave()
			t.drop()
		}
	}
	s.ended = true
	s.scopes.open = s.parent
	s.scopes.spare = s.tensors[:0]
	s.tensors = nil
}

// promote hands a tensor to the scope around this one.
func (s *Scope) promote(t *Tensor) {
	if t.scope != s {
		return // an outer scope's, or kept
	}
	t.leave()
	open := s.scopes.open
	s.scopes.open = s.parent
	s.scopes.add(t)
	s.scopes.open = open
}

// Tidy runs f in a scope of its own and hands its result to the scope around:
// what f made on the way is released at once.
func Tidy(o Ops, f func() *Tensor) *Tensor {
	s := o.Begin()
	defer s.End()
	t := f()
	s.promote(t)
	return t
}

// Run runs f in a scope and ends it whichever way f ends. A panic with an
// *Error, as operations raise, becomes the error; any other panic goes on once
// the temporaries are released.
func Run(o Ops, f func(*Scope) error) (err error) {
	s := o.Begin()
	defer func() {
		s.End()
		if p := recover(); p != nil {
			e, ok := p.(error)
			var known *Error
			if !ok || !errors.As(e, &known) {
				panic(p)
			}
			err = e
		}
	}()
	return f(s)
}
