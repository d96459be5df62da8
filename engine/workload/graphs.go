package workload

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// graphPrograms are programs that hold on to parts of a graph.
func graphPrograms() []Workload {
	return []Workload{
		{
			ID: "L14", Alias: "tracked-statistics", Title: "running moments are made of tracked numbers, and grow a graph",
			Label: Leak, Cause: "graph-retained",
			Truth: func(seed int64) Truth {
				d := draws{"L14", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L14", Event: PerStep, Every: beat.every, First: beat.first,
					// The offset, which is squared, and what its mean is scaled by.
					Blocks: 2, Bytes: snapshot.Bytes(4*d.sizes().classes + 4),
					Shape: Linear, Owner: snapshot.OwnedByTape,
				}}}
			},
			New: shared("L14", newTrackedMoments),
		},
		{
			ID: "L16", Alias: "op-keeps-output", Title: "an operation of the program's own keeps its result on itself, also where backward never comes",
			Label: Leak, Cause: "saved-on-the-op",
			Truth: func(seed int64) Truth {
				d := draws{"L16", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L16", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes * d.sizes().rows),
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L16", newCapping),
		},
		{
			ID: "L21", Alias: "error-holds-batch", Title: "the errors of batches that were refused hold the features that these had",
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
			ID: "D18", Alias: "late-collector", Title: "features of the last batches are given back every so many steps, and the last alone is used",
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

// trackedMoments follow mean and variance of each logit over the steps.
type trackedMoments struct {
	*trainer
	beat           rhythm
	mean, variance *engine.Tensor // [classes]
	share          *engine.Tensor // of a step in them, a scalar
}

func newTrackedMoments(t *trainer) (any, error) {
	m := &trackedMoments{trainer: t, beat: t.draws.rhythm()}
	m.share = t.ops.Full(0.1)
	m.mean, m.variance = t.ops.Full(0, t.sizes.classes), t.ops.Full(1, t.sizes.classes)
	t.on.step = m.step
	t.on.close = func() {
		m.share.Release()
		m.mean.Release()
		m.variance.Release()
	}
	return m, nil
}

func (m *trackedMoments) step(_ *batch, logits *engine.Tensor) error {
	if !m.beat.due(m.steps) {
		return nil
	}
	o := m.ops
	if m.config.Fixed {
		logits = o.Detach(logits)
	}
	off := o.Sub(engine.Mean(o, logits, 0), m.mean) //leak:L14
	m.mean = m.moved(m.mean, off)
	m.variance = m.moved(m.variance, o.Sub(o.Mul(off, off), m.variance))
	m.adds("L14")
	m.measure(float64(o.Floats(engine.Mean(o.Valid(), m.variance))[0]))
	return nil
}

// moved is a moment after its share of a step by off.
func (m *trackedMoments) moved(moment, off *engine.Tensor) *engine.Tensor {
	next := m.ops.Add(moment, m.ops.Mul(off, m.share)).Keep()
	moment.Release()
	return next
}

// capping bounds logits softly, as cap·tanh(x/cap) (Gemma 2, 2024). Each call is an
// operation of its own, which is listed until backward has come to it.
type capping struct {
	*trainer
	beat  rhythm
	cap   float32
	calls []*softCap
}

// softCap is one call. Backward needs its result alone.
type softCap struct {
	of  *capping
	out *engine.Tensor // nil where the tape has it
}

func newCapping(t *trainer) (any, error) {
	c := &capping{trainer: t, beat: t.draws.rhythm(), cap: float32(t.draws.between("cap", 5, 30))}
	t.on.loss = func(b *batch, logits, _ *engine.Tensor) *engine.Tensor { return c.loss(b, logits) }
	t.on.step = c.look
	t.on.close = func() {
		for _, s := range c.calls {
			s.out.Release()
		}
	}
	return c, nil
}

func (c *capping) loss(b *batch, logits *engine.Tensor) *engine.Tensor {
	return engine.CrossEntropy(c.ops, c.ops.Apply(&softCap{of: c}, logits), b.labels, nil)
}

// look measures the loss of a batch held out; nobody goes back from there.
func (c *capping) look(*batch, *engine.Tensor) error {
	if !c.beat.due(c.steps) {
		return nil
	}
	b := c.data.heldOut(c.steps).upload(c.ops)
	loss := c.loss(b, c.model.Forward(c.ops, b.x))
	c.adds("L16")
	c.measure(float64(c.ops.Floats(loss)[0]))
	return nil
}

// Name is what errors call it.
func (s *softCap) Name() string { return "soft cap" }

// Forward computes cap·tanh(x/cap).
func (s *softCap) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	out := engine.Scale(o, o.Tanh(engine.Scale(o, in[0], 1/s.of.cap)), s.of.cap) //leak:L16
	if s.of.config.Fixed {
		c.Save(out)
		return out
	}
	s.out = out.Retain()
	s.of.calls = append(s.of.calls, s)
	return out
}

// Backward is g·(1-(out/cap)²).
func (s *softCap) Backward(c *autodiff.Context, o engine.Ops, grad *engine.Tensor) []*engine.Tensor {
	out := s.out
	if out == nil {
		out = c.Saved()[0]
	}
	share := engine.Scale(o, out, 1/s.of.cap)
	below := o.Mul(grad, o.Sub(o.Full(1), o.Mul(share, share)))
	if s.out != nil {
		s.out.Release()
		s.of.calls = slices.DeleteFunc(s.of.calls, func(other *softCap) bool { return other == s })
	}
	return []*engine.Tensor{below}
}

// errorEvery draws how many steps pass for one batch that is refused.
func errorEvery(d draws) int64 { return int64(d.between("refused", 4, 15)) }

// refusedError is why a batch was refused, with what shows it.
type refusedError struct {
	step     int64
	most     float32
	features *engine.Tensor // [rows hidden]; nil where nobody wants to see them
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("step %d: features go up to %g", e.step, e.most)
}

// refused reads a second source of batches, with a broken one every so often.
type refused struct {
	*trainer
	every  int64
	errors []error
}

func newRefused(t *trainer) (any, error) {
	r := &refused{trainer: t, every: errorEvery(t.draws)}
	t.on.step = func(*batch, *engine.Tensor) error {
		if err := r.check(r.read()); err != nil {
			r.errors = append(r.errors, err)
			r.addsUnits("L21", int64(t.sizes.rows))
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

// read is the next batch; in a broken one, numbers are in other units.
func (r *refused) read() *batch {
	h := r.data.heldOut(r.steps)
	if r.steps%r.every == 0 {
		for i := range h.x {
			h.x[i] *= 1e6
		}
	}
	return h.upload(r.ops)
}

// check measures the loss of a batch, unless its features are out of range.
func (r *refused) check(b *batch) error {
	const limit = 1e4
	v := r.ops.Valid()
	features := r.model.Features(v, b.x) //leak:L21
	if most := v.Floats(v.MaxOver(v.MaxOver(features, 1), 0))[0]; most > limit {
		e := &refusedError{step: r.steps, most: most}
		if !r.config.Fixed {
			e.features = features.Keep()
		}
		return e
	}
	logits := r.model.layers[len(r.model.layers)-1].Forward(v, features)
	r.measure(float64(v.Floats(engine.CrossEntropy(v, logits, b.labels, nil))[0]))
	return nil
}

// collectEvery draws how many steps pass between two collections.
func collectEvery(d draws) int { return d.between("collect", 6, 20) }

// collected compares the features of each batch with the last one's, and leaves what
// it does not need any more to a collector.
type collected struct {
	*trainer
	every    int64
	features []*engine.Tensor // [rows hidden], the last one's after those not needed
}

func newCollected(t *trainer) (any, error) {
	c := &collected{trainer: t, every: int64(collectEvery(t.draws))}
	t.on.step = c.step
	t.on.close = func() { releaseAll(&c.features) }
	return c, nil
}

func (c *collected) step(b *batch, _ *engine.Tensor) error {
	v := c.ops.Valid()
	features := c.model.Features(v, b.x).Keep() //held:D18
	if n := len(c.features); n > 0 {
		off := engine.L1(v, engine.Mean(v, features, 0), engine.Mean(v, c.features[n-1], 0), engine.Average)
		c.measure(float64(v.Floats(off)[0]))
	}
	if c.steps%c.every == 0 {
		releaseAll(&c.features)
	}
	c.features = append(c.features, features)
	c.addsUnits("D18", b.rows())
	return nil
}
