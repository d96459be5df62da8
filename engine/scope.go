package engine

import (
	"cmp"
	"errors"
)

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
	// spare is the list of an ended scope, used again by the next, and idle are
	// ended scopes that nobody else knows, each the parent of the one before.
	spare []*Tensor
	idle  *Scope
}

func (s *scopes) begin() *Scope {
	scope := s.idle
	if scope == nil {
		scope = new(Scope)
	} else {
		s.idle = scope.parent
	}
	*scope = Scope{scopes: s, parent: s.open, tensors: s.spare[:0]}
	s.spare = nil
	s.open = scope
	return scope
}

// finish ends a scope that was handed to nobody, and has it used again: a tenth of
// a step's objects on the host would be scopes.
func (s *Scope) finish() {
	s.End()
	s.parent, s.scopes.idle = s.scopes.idle, s
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
// inside it that are still open. A second End does nothing. A panic on the way,
// such as that a hook has released a gradient which belongs to its tensor, goes on
// when all is released and the scope is closed.
func (s *Scope) End() {
	switch inner := s.scopes.open; {
	case s.ended:
	case inner != s:
		defer s.End()
		inner.end()
	default:
		s.end()
	}
}

func (s *Scope) end() {
	defer s.close()
	s.drop(len(s.tensors))
}

// drop releases the first n tensors, last made first.
func (s *Scope) drop(n int) {
	defer func() {
		if n > 0 { // the one after these has panicked
			s.drop(n)
		}
	}()
	for n > 0 {
		n--
		if t := s.tensors[n]; t != nil {
			t.leave()
			t.drop()
		}
	}
}

func (s *Scope) close() {
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
// what f made on the way is released at once. It panics with an *Error if the
// result is nil or released.
func Tidy(o Ops, f func() *Tensor) *Tensor {
	s := o.Begin()
	defer s.finish()
	t := f()
	if t == nil {
		panic(&Error{Op: "tidy", Reason: "the function returned no tensor"})
	}
	t.held("tidy")
	s.promote(t)
	return t
}

// Within runs f in a scope of its own, which ends with f, also by a panic.
func Within(o Ops, f func()) {
	s := o.Begin()
	defer s.finish()
	f()
}

// Run runs f in a scope and ends it whichever way f ends. A panic with an
// *Error, as operations raise, becomes the error, and so does one that the end of
// the scope raises, after the error of f; any other panic goes on once the
// temporaries are released.
func Run(o Ops, f func(*Scope) error) error {
	s := o.Begin()
	ended := false
	defer func() {
		if !ended { // a panic that goes on, or the end of the goroutine
			s.End()
		}
	}()
	err := misused(func() error { return f(s) })
	ended = true
	return join(err, misused(func() error {
		s.End()
		return nil
	}))
}

// misused returns the error of f, or the *Error that it panics with.
func misused(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(error)
			var known *Error
			if !ok || !errors.As(e, &known) {
				panic(p)
			}
			err = e
		}
	}()
	return f()
}

// join is errors.Join that leaves a single error as it is.
func join(first, second error) error {
	if first == nil || second == nil {
		return cmp.Or(first, second)
	}
	return errors.Join(first, second)
}
