package autodiff

import (
	"fmt"
	"sync"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// Checkpoint computes f(inputs) and saves the inputs alone. Where backward comes
// to the result, f is run once more, to have again what its operations would have
// saved: memory for time. f must do the same operations each time, or backward
// panics with an *engine.Error; a random draw, say, is made outside. What f reads
// beside its inputs, such as parameters, gets its gradient too; it must live until
// then. Checkpoints may nest.
func (o *Ops) Checkpoint(f func(inputs ...*engine.Tensor) *engine.Tensor, inputs ...*engine.Tensor) *engine.Tensor {
	engine.Check("checkpoint", inputs...)
	if o.quiet == 0 {
		recording, replay := o.segment, o.replay
		defer func() { o.segment, o.replay = recording, replay }()
		if replay != nil { // this part was recorded as its own, and runs again as its own
			o.replay = &segment{passing: true}
		} else {
			o.segment = newSegment(f, inputs)
			defer o.segment.release()
		}
	}
	return engine.Tidy(o, func() *engine.Tensor {
		out := f(inputs...)
		engine.Check("result of checkpoint", out)
		return out
	})
}

// Checkpointing reports whether operations are part of a Checkpoint now: what they
// do is done once more in backward, and must not hang on what is kept meanwhile.
func (o *Ops) Checkpointing() bool { return o.segment != nil || o.replay != nil }

// segment is the part of a graph that a Checkpoint made. Its nodes refer to it,
// and the last one that goes releases its inputs.
type segment struct {
	f      func(inputs ...*engine.Tensor) *engine.Tensor
	inputs []saved
	ops    []string // of its nodes, in the order of recording
	marks  []mark   // of what they would have saved
	// passing marks one that is only passed by, while another is run again.
	passing bool

	// A sweep of another goroutine may free a node of a registry tape.
	mu    sync.Mutex
	refs  int
	slots []saved // by mark, once it was run again
	ready bool
	at    int // into ops, while it runs again
}

// mark is what is known of a saved tensor before f is run again: a block of f's
// own will have been written as often, any other must not have been written since.
type mark struct {
	saved  bool
	writes uint32
}

func newSegment(f func(...*engine.Tensor) *engine.Tensor, inputs []*engine.Tensor) *segment {
	g := &segment{f: f, refs: 1}
	for _, t := range inputs {
		g.inputs = append(g.inputs, saved{tensor: t.Retain().Own(snapshot.OwnedByTape), writes: t.Storage().Writes()})
	}
	return g
}

// recorded makes a node one of the segment's.
func (g *segment) recorded(n *Node, saves []*engine.Tensor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n.segment, n.slot = g, len(g.marks)
	g.refs++
	g.ops = append(g.ops, n.op)
	for _, t := range saves {
		var m mark
		if t != nil {
			m = mark{true, t.Storage().Writes()}
		}
		g.marks = append(g.marks, m)
	}
}

// run has f fill the slots.
func (g *segment) run(o *Ops) {
	s := o.inner.Begin()
	quiet, recording, replay := o.quiet, o.segment, o.replay
	o.quiet, o.segment, o.replay = 0, nil, g
	g.at = 0
	defer func() {
		o.quiet, o.segment, o.replay = quiet, recording, replay
		s.End()
		if !g.ready {
			g.forget()
		}
	}()
	inputs := make([]*engine.Tensor, len(g.inputs))
	for i, in := range g.inputs {
		inputs[i] = in.tensor
	}
	g.f(inputs...)
	if g.at < len(g.ops) {
		g.differs("ended")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ready = true
}

// replayed takes what an operation saves into its slots, and has out look like
// the result of a recorded operation, so that what is computed with it comes here
// as well.
func (g *segment) replayed(op string, out *engine.Tensor, saves []*engine.Tensor) {
	out.Attach(&Node{op: op, refs: 1, backward: func(*pass) {}})
	if g.passing {
		return
	}
	if g.at == len(g.ops) || g.ops[g.at] != op {
		g.differs("did " + op)
	}
	g.at++
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range saves {
		m := g.marks[len(g.slots)]
		if m.saved != (t != nil) {
			g.differs("did " + op + " of other operands")
		}
		var s saved
		if t != nil {
			if m.writes != t.Storage().Writes() {
				panic(&engine.Error{Op: "checkpoint", Shapes: []engine.Shape{t.Shape()}, Reason: "Assign has written to what " + op + " read when it ran first; run Backward before"})
			}
			s.tensor = t.Share(snapshot.OwnedByTape)
		}
		g.slots = append(g.slots, s)
	}
}

// differs panics because f did something else than at first.
func (g *segment) differs(what string) {
	first := "had ended"
	if i := min(g.at, len(g.ops)); i < len(g.ops) {
		first = "did " + g.ops[i]
	}
	panic(&engine.Error{Op: "checkpoint", Reason: fmt.Sprintf("run again, the function %s where it %s at first; it must do the same operations each time", what, first)})
}

// slot is a saved tensor, once the segment was run again.
func (g *segment) slot(i int) *engine.Tensor {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots[i].tensor
}

// drop releases one slot, if it is filled.
func (g *segment) drop(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i < len(g.slots) && g.slots[i].tensor != nil {
		g.slots[i].tensor.Release()
		g.slots[i].tensor = nil
	}
}

// forget empties all slots; the segment can be run again.
func (g *segment) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
}

func (g *segment) empty() {
	for _, s := range g.slots {
		if s.tensor != nil {
			s.tensor.Release()
		}
	}
	g.slots, g.ready = nil, false
}

// release takes one node's reference back.
func (g *segment) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refs--; g.refs > 0 {
		return
	}
	g.empty()
	for _, in := range g.inputs {
		in.tensor.Release()
	}
	g.inputs = nil
}
