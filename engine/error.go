package engine

import (
	"fmt"
	"strings"
)

// Error is a misuse of a tensor, or an operation that could not be done. Ops
// panic with it, because every line of a model would else carry an error check;
// Run turns it back into an error at the edge of a step.
type Error struct {
	Op        string  // "matmul"
	Reason    string  // what is wrong, and the way out
	Shapes    []Shape // of the operands
	Allocated string  // where the tensor at fault was allocated; "" where that says nothing
	Err       error   // the cause below, such as a *mem.OutOfMemoryError; may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	for i, s := range e.Shapes {
		b.WriteString([]string{" of ", " and "}[min(i, 1)])
		b.WriteString(s.String())
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Allocated != "" {
		b.WriteString(" (allocated at " + e.Allocated + ")")
	}
	return b.String()
}

// Unwrap returns the cause below.
func (e *Error) Unwrap() error { return e.Err }
