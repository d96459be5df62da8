package autodiff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// Function is an operation of the caller's own, with a derivative of its own.
// What Backward reads is handed over with Context.Save. A tensor that is kept on
// the Function instead is not freed with the graph; and if it is the result, its
// node, the Function and the result hold each other for good.
type Function interface {
	// Name is what errors and hooks call the operation.
	Name() string
	// Forward computes the result with operations that do not record.
	Forward(c *Context, o engine.Ops, inputs ...*engine.Tensor) *engine.Tensor
	// Backward returns the gradient of every input, float32 and of its shape, from the
	// result's; nil for one that gets none. It can be differentiated in turn if it computes
	// with o alone, of grad, saved inputs and the saved result: a temporary that Forward
	// saved is a constant then.
	Backward(c *Context, o engine.Ops, grad *engine.Tensor) []*engine.Tensor
}

// Context carries tensors from a Function's Forward to its Backward.
type Context struct {
	saved []*engine.Tensor
	wants []bool
}

// Save keeps tensors for Backward, in Forward: operands, temporaries or the
// result. The tape owns them from then on. nil holds a place.
func (c *Context) Save(ts ...*engine.Tensor) { c.saved = append(c.saved, ts...) }

// Saved returns in Backward what Forward saved, in order. It is valid until
// Backward returns.
func (c *Context) Saved() []*engine.Tensor { return c.saved }

// Wants reports whether input i gets a gradient: what only other inputs need
// may be left out, of what is saved as of what is computed.
func (c *Context) Wants(i int) bool { return c.wants[i] }

// Apply runs a Function, and records it if an input is tracked.
func (o *Ops) Apply(f Function, inputs ...*engine.Tensor) *engine.Tensor {
	engine.Check(f.Name(), inputs...)
	return engine.Tidy(o, func() *engine.Tensor {
		c := &Context{wants: make([]bool, len(inputs))}
		for i, t := range inputs {
			c.wants[i] = o.tracked(t)
		}
		var out *engine.Tensor
		o.NoGrad(func() { out = f.Forward(c, o.inner, inputs...) })
		engine.Check("result of "+f.Name(), out)
		for _, t := range c.saved {
			if t != nil {
				engine.Check(f.Name()+" saving", t)
			}
		}
		if !slices.Contains(c.wants, true) {
			return o.plain(f.Name(), out)
		}
		if out.History() != nil { // an input handed through: the result needs a handle of its own
			out = o.inner.Detach(out)
		}
		shapes := shapesOf(inputs)
		return o.record(f.Name(), out, inputs, c.saved, func(p *pass) {
			back := &Context{saved: p.saved, wants: c.wants}
			p.apply(f, back, shapes)
		})
	})
}

func shapesOf(ts []*engine.Tensor) []engine.Shape {
	shapes := make([]engine.Shape, len(ts))
	for i, t := range ts {
		shapes[i] = t.Shape()
	}
	return shapes
}

// apply runs a Function's Backward.
func (p *pass) apply(f Function, c *Context, shapes []engine.Shape) {
	grads := f.Backward(c, p.Ops, p.grad)
	if len(grads) != len(shapes) {
		panic(&engine.Error{Op: "backward of " + f.Name(), Shapes: shapes, Reason: fmt.Sprintf("it returned %d gradients for %d inputs", len(grads), len(shapes))})
	}
	for i, g := range grads {
		if g == nil {
			continue
		}
		engine.Check("backward of "+f.Name(), g)
		if g.DType() != engine.Float32 {
			panic(&engine.Error{Op: "backward of " + f.Name(), Shapes: []engine.Shape{g.Shape()}, Reason: fmt.Sprintf("the gradient of input %d is %s, not float32", i, g.DType())})
		}
		if g.Shape() != shapes[i] {
			panic(&engine.Error{Op: "backward of " + f.Name(), Shapes: []engine.Shape{g.Shape(), shapes[i]}, Reason: fmt.Sprintf("the gradient of input %d has another shape than the input", i)})
		}
		p.given = append(p.given, g.Storage()) // the block may be the caller's
		p.to(i, func() *engine.Tensor { return g })
	}
}
