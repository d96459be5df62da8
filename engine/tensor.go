package engine

import (
	"fmt"
	"runtime"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// DType is the type of a tensor's elements.
type DType uint8

// Element types. Indices are Int32, all else is Float32.
const (
	Float32 DType = iota
	Int32
)

func (t DType) String() string { return [...]string{"float32", "int32"}[t] }

// Tensor is a handle: a strided window on a block of device memory, and one
// reference on that block. Whoever holds the handle owes it a Release; a handle
// in a Scope is released by the scope. Garbage collection releases nothing.
//
// A tensor belongs to the goroutine of the Ops that made it.
type Tensor struct {
	storage *mem.Storage
	shape   Shape
	strides Strides
	offset  int
	dtype   DType
	owner   snapshot.Owners
	history History
	scope   *Scope // nil where the caller owns the handle
	slot    int    // its place in the scope
	witness mem.Witness
	gone    bool
}

// History is what a decorator of Ops attaches to its results: how they came
// about. A tensor holds one reference on its history and releases it with
// itself.
type History interface {
	Retain()
	Release()
}

// Shape returns the tensor's extents.
func (t *Tensor) Shape() Shape { return t.given("shape").shape }

// Dim returns one extent; -1 is the innermost.
func (t *Tensor) Dim(axis int) int { return t.shape.Dims[t.given("dim").axis("dim", axis)] }

// DType returns the element type.
func (t *Tensor) DType() DType { return t.given("dtype").dtype }

// Owner is the class that the handle's reference counts for.
func (t *Tensor) Owner() snapshot.Owners { return t.owner }

// Storage is the block that the handle holds a reference on. Views share it.
func (t *Tensor) Storage() *mem.Storage { return t.given("storage").storage }

// Released reports whether the handle has given its reference back.
func (t *Tensor) Released() bool { return t.gone }

// View is what kernels see. It panics with an *Error after Release.
func (t *Tensor) View() View {
	t.held("view")
	return t.view()
}

func (t *Tensor) view() View {
	return View{Buffer: t.storage.Buffer(), Shape: t.shape, Strides: t.strides, Offset: t.offset}
}

// String describes the handle, not its contents.
func (t *Tensor) String() string {
	if t.gone {
		return fmt.Sprintf("released %s %v", t.dtype, t.shape)
	}
	return fmt.Sprintf("%s %v", t.dtype, t.shape)
}

// Release gives the handle's reference back; the block's last reference frees
// it. A second Release panics with an *Error.
func (t *Tensor) Release() {
	t.held("release")
	t.leave()
	t.drop()
}

// drop releases a handle that is in no scope any more. The history goes before
// the block, which goes also if the history panics.
func (t *Tensor) drop() {
	t.gone = true
	t.witness.Stop()
	runtime.KeepAlive(t)
	defer t.storage.Release(t.owner)
	if h := t.history; h != nil {
		t.history = nil
		h.Release()
	}
}

// Keep takes the handle out of its scope: the caller owes the Release. It
// returns the tensor.
func (t *Tensor) Keep() *Tensor {
	t.held("keep")
	if t.scope != nil {
		t.leave()
		t.watch()
	}
	return t
}

// Own is Keep with the reference counted for another owner class from now on.
func (t *Tensor) Own(class snapshot.Owners) *Tensor {
	t.held("own")
	t.one("own", class)
	t.Keep()
	t.storage.Move(t.owner, class)
	t.owner = class
	return t
}

// Retain returns a second handle on the same tensor, its history included, in no
// scope: the caller owes the Release.
func (t *Tensor) Retain() *Tensor {
	s := t.Share(snapshot.OwnedByUser)
	if t.history != nil {
		t.history.Retain()
		s.history = t.history
	}
	return s
}

// Share returns a handle without history on the same elements, in no scope,
// whose reference counts for the given class.
func (t *Tensor) Share(class snapshot.Owners) *Tensor {
	t.held("share")
	t.one("share", class)
	t.storage.Retain(class)
	s := &Tensor{storage: t.storage, shape: t.shape, strides: t.strides, offset: t.offset, dtype: t.dtype, owner: class}
	s.watch()
	return s
}

// one panics unless the owners are one class: a reference counts for one.
func (t *Tensor) one(op string, class snapshot.Owners) {
	if err := mem.OneClass(class); err != nil {
		panic(&Error{Op: op, Shapes: []Shape{t.shape}, Allocated: t.allocated(), Err: err})
	}
}

// History returns what Attach gave; nil where there is none.
func (t *Tensor) History() History { return t.given("history").history }

// Attach hands a history over to the tensor, with the caller's reference on it.
// A history that the tensor had is released.
func (t *Tensor) Attach(h History) {
	t.held("attach")
	old := t.history
	t.history = h
	if old != nil {
		old.Release()
	}
}

// watch has the collector prove a handle lost. Handles in a scope are left out:
// the scope holds them, and it saves a microsecond for each temporary.
func (t *Tensor) watch() { t.witness = mem.Watch(t, t.storage) }

// Check panics with an *Error of op if an operand is nil or was released: what
// takes tensors calls it first. Operands count from 1.
func Check(op string, operands ...*Tensor) {
	for i, t := range operands {
		if t == nil && len(operands) > 1 {
			panic(&Error{Op: op, Reason: fmt.Sprintf("operand %d of %d is nil", i+1, len(operands))})
		}
		t.held(op)
	}
}

// given panics if there is no handle.
func (t *Tensor) given(op string) *Tensor {
	if t == nil {
		panic(&Error{Op: op, Reason: "the tensor is nil"})
	}
	return t
}

// held panics if there is no handle, or it holds no reference.
func (t *Tensor) held(op string) {
	if t.given(op).storage == nil {
		panic(&Error{Op: op, Reason: "the tensor is the zero value; operations make tensors"})
	}
	if t.gone {
		reason := "the tensor was released before; Keep what outlives its scope"
		if op == "release" {
			reason = "the tensor was released before; each handle is released once, by its scope or by its owner"
		}
		panic(&Error{Op: op, Reason: reason, Shapes: []Shape{t.shape}, Allocated: t.allocated()})
	}
}

// allocated names the line that made the block: the innermost frame outside the
// engine's own operations.
func (t *Tensor) allocated() string {
	frames := t.storage.Device().Stack(t.storage.Site())
	if len(frames) == 0 {
		return ""
	}
	f := frames[min(1, len(frames)-1)]
	return fmt.Sprintf("%s:%d in %s", f.File, f.Line, f.Function)
}

// axis resolves an axis that may count from the innermost.
func (t *Tensor) axis(op string, axis int) int {
	at := axis
	if at < 0 {
		at += t.shape.Rank
	}
	if at < 0 || at >= t.shape.Rank {
		fail(op, fmt.Sprintf("there is no axis %d", axis), t)
	}
	return at
}
