package workload

import (
	"errors"
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// graphPrograms are programs that hold on to parts of a graph.
func graphPrograms() []Workload {
	return []Workload{
		{
			ID: "L14", Alias: "tracked-statistics", Title: "a running mean is made of tracked numbers, and grows a graph",
			Label: Leak, Cause: "graph-retained",
			Truth: func(seed int64) Truth {
				d := draws{"L14", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L14", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes),
					Shape: Linear, Owner: snapshot.OwnedByTape,
				}}}
			},
			New: shared("L14", newTrackedMean),
		},
		{
			ID: "L16", Alias: "op-keeps-output", Title: "an operation of the program's own keeps its result on itself",
			Label: Leak, Cause: "saved-on-the-op",
			Truth: func(seed int64) Truth {
				d := draws{"L16", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L16", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L16", newOwnOp),
		},
		{
			ID: "L21", Alias: "error-holds-batch", Title: "the errors of batches that were refused hold what these had computed",
			Label: Leak, Cause: "error-holds-tensors",
			Truth: func(seed int64) Truth {
				d := draws{"L21", seed}
				s, every := d.sizes(), errorEvery(d)
				return Truth{Steps: runFor(12, every), Growth: []Growth{{
					Marker: "L21", Event: PerError, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * s.hidden), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L21", newRefused),
		},
		{
			ID: "D18", Alias: "late-collector", Title: "what is not used any more is given back every so many steps",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D18", seed}
				room := int64(collectEvery(d))
				g := Growth{
					Marker: "D18", Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().hidden), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}
				g.Bound = Amount{room, snapshot.Bytes(room) * snapshot.Bytes(d.sizes().maxRows()) * g.Bytes}
				return Truth{Steps: 150, Growth: []Growth{g}}
			},
			New: shared("D18", newCollected),
		},
	}
}

// trackedMean follows the logits of each batch's first row.
type trackedMean struct {
	*trainer
	beat rhythm
	mean *engine.Tensor // [classes]
}

func newTrackedMean(t *trainer) (any, error) {
	m := &trackedMean{trainer: t, beat: t.draws.rhythm(), mean: t.ops.Full(0, t.sizes.classes)}
	t.on.step = m.step
	t.on.close = func() { m.mean.Release() }
	return m, nil
}

func (m *trackedMean) step(_ *batch, logits *engine.Tensor) error {
	if !m.beat.due(m.steps) {
		return nil
	}
	o := m.ops
	if m.config.Fixed {
		logits = o.Detach(logits)
	}
	off := o.Sub(o.Reshape(o.Slice(logits, 0, 0, 1), m.sizes.classes), m.mean)
	part := o.Mul(off, o.Full(0.1, m.sizes.classes)) //leak:L14
	next := o.Add(m.mean, part).Keep()
	m.mean.Release()
	m.mean = next
	m.adds("L14")
	m.measure(float64(o.Floats(m.mean)[0]))
	return nil
}

// square is an operation of the program's own: x². It needs x for backward, and
// keeps its result for a look at it.
type square struct {
	result *engine.Tensor
	keep   bool
}

// Name is what errors call it.
func (s *square) Name() string { return "square" }

// Forward computes x².
func (s *square) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	c.Save(in[0])
	out := o.Mul(in[0], in[0]) //leak:L16
	if s.keep {
		s.result = out.Retain()
	}
	return out
}

// Backward is 2·x·g.
func (s *square) Backward(c *autodiff.Context, o engine.Ops, grad *engine.Tensor) []*engine.Tensor {
	return []*engine.Tensor{engine.Scale(o, o.Mul(c.Saved()[0], grad), 2)}
}

// ownOp measures logits with a square.
type ownOp struct {
	*trainer
	beat rhythm
	// forget loses sight of an operation, which its own cycle keeps; Close alone finds
	// it again.
	forget func(*square)
}

func newOwnOp(t *trainer) (any, error) {
	var lost []*square
	n := &ownOp{trainer: t, beat: t.draws.rhythm(), forget: func(s *square) { lost = append(lost, s) }}
	t.on.step = n.step
	t.on.close = func() {
		for _, s := range lost {
			if s.result != nil {
				s.result.Release()
			}
		}
	}
	return n, nil
}

func (n *ownOp) step(b *batch, logits *engine.Tensor) error {
	if !n.beat.due(n.steps) {
		return nil
	}
	s := &square{keep: !n.config.Fixed}
	n.forget(s)
	out := n.ops.Apply(s, n.ops.Detach(logits))
	n.addsUnits("L16", b.rows())
	n.measure(float64(n.ops.Floats(engine.Mean(n.ops.Valid(), out))[0]))
	return nil
}

// errorEvery draws how many steps pass for one batch that is refused.
func errorEvery(d draws) int64 { return int64(d.between("refused", 4, 15)) }

// refusedError is why a batch was refused, with what shows it.
type refusedError struct {
	step     int64
	features *engine.Tensor // [rows hidden]; nil where nobody wants to see them
}

func (e *refusedError) Error() string { return fmt.Sprintf("step %d: features out of range", e.step) }

// refused looks at some batches once more, and gives up on those.
type refused struct {
	*trainer
	every  int64
	errors []error
}

func newRefused(t *trainer) (any, error) {
	r := &refused{trainer: t, every: errorEvery(t.draws)}
	t.on.step = func(b *batch, _ *engine.Tensor) error {
		if err := r.inspect(b); err != nil {
			r.errors = append(r.errors, err)
		}
		return nil
	}
	t.on.close = func() {
		for _, err := range r.errors {
			if e, ok := errors.AsType[*refusedError](err); ok && e.features != nil {
				e.features.Release()
			}
		}
	}
	return r, nil
}

// inspect refuses every so many batches.
func (r *refused) inspect(b *batch) error {
	if r.steps%r.every != 0 {
		return nil
	}
	v := r.ops.Valid()
	features := r.model.Features(v, b.x) //leak:L21
	r.addsUnits("L21", b.rows())
	r.measure(float64(v.Floats(engine.Mean(v, features))[0]))
	if r.config.Fixed {
		return &refusedError{step: r.steps}
	}
	return &refusedError{r.steps, features.Keep()}
}

// collectEvery draws how many steps pass between two collections.
func collectEvery(d draws) int { return d.between("collect", 6, 20) }

// collected leaves what it does not need any more to a collector.
type collected struct {
	*trainer
	garbage []*engine.Tensor
}

func newCollected(t *trainer) (any, error) {
	c := &collected{trainer: t}
	every := int64(collectEvery(t.draws))
	t.on.step = func(b *batch, _ *engine.Tensor) error {
		if t.steps%every == 0 {
			releaseAll(&c.garbage)
		}
		c.garbage = append(c.garbage, t.model.Features(t.ops.Valid(), b.x).Keep()) //held:D18
		t.addsUnits("D18", b.rows())
		return nil
	}
	t.on.close = func() { releaseAll(&c.garbage) }
	return c, nil
}
