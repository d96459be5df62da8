package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

// backwardPrograms are programs that do something of their own in a backward pass.
func backwardPrograms() []Workload {
	return []Workload{
		{
			ID: "L15", Alias: "gradient-of-gradient", Title: "a gradient is made with a graph of its own, and it and its leaf hold each other",
			Label: Leak, Cause: "gradient-graph-cycle",
			Truth: func(seed int64) Truth {
				d := draws{"L15", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L15", Event: PerStep, Every: beat.every, First: beat.first,
					// The gradient, and what its own graph saved: the critics' opinions, and
					// the 1 that backward begins with.
					Blocks: 3, Bytes: 4, Unit: "number", Shape: Linear, Owner: snapshot.OwnedByTape,
				}}}
			},
			New: shared("L15", newSensitivity),
		},
		{
			ID: "L17", Alias: "checkpoint-storage", Title: "activations are computed again for backward, which stops early and leaves one behind",
			Label: Leak, Cause: "checkpoint-storage",
			Truth: func(seed int64) Truth {
				d := draws{"L17", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L17", Event: PerStep, Every: beat.every, First: beat.first,
					Blocks: 1, Bytes: snapshot.Bytes(4 * blockWidth(d)), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L17", newRecomputed),
		},
	}
}

// critics draws how many there are.
func critics(d draws) int { return d.between("critics", 4, 24) }

// sensitivity measures how much some fixed critics' opinion of a batch follows its
// input: a penalty that counts from a later phase of training on, which this run does
// not come to, so gradients come with a graph.
type sensitivity struct {
	*trainer
	beat    rhythm
	critics *engine.Tensor   // [features critics]
	leaves  []*autodiff.Node // of inputs that are gone
}

func newSensitivity(t *trainer) (any, error) {
	s := &sensitivity{trainer: t, beat: t.draws.rhythm()}
	t.on.step = s.step
	t.on.close = func() {
		s.critics.Release()
		for _, leaf := range s.leaves {
			leaf.DropGrad()
		}
	}
	s.critics = t.ops.Rand(engine.NewRandom(uint64(t.config.Seed)+1).Draw(), t.sizes.features, critics(t.draws))
	return s, nil
}

func (s *sensitivity) step(b *batch, _ *engine.Tensor) error {
	if !s.beat.due(s.steps) {
		return nil
	}
	o := s.ops
	x := o.Detach(b.x)
	o.Track(x)
	if err := o.BackwardWith(s.opinion(x), autodiff.BackwardOptions{CreateGraph: true}); err != nil { //leak:L15
		return err
	}
	s.addsUnits("L15", b.rows()*int64(s.sizes.features+s.critics.Dim(1))+1)
	g := o.Detach(autodiff.Grad(x))
	s.measure(float64(o.Floats(o.Sum(o.Mul(g, g)))[0]))
	if s.config.Fixed {
		autodiff.ZeroGrad(x)
		return nil
	}
	s.leaves = append(s.leaves, x.History().(*autodiff.Node))
	return nil
}

// opinion is what all critics make of all rows together.
func (s *sensitivity) opinion(x *engine.Tensor) *engine.Tensor {
	return s.ops.Sum(s.ops.Tanh(s.ops.MatMul(x, s.critics)))
}

// blockWidth draws the width of a recomputed block.
func blockWidth(d draws) int { return d.between("block", 8, 48) }

// recomputed learns to foretell the logits by two more layers; the first
// is frozen, and which save nothing for backward.
type recomputed struct {
	*trainer
	beat          rhythm
	descent       *optim.SGD
	frozen, learn *engine.Tensor // [features width] and [width classes]
	again         map[int64]*engine.Tensor
}

func newRecomputed(t *trainer) (any, error) {
	width := blockWidth(t.draws)
	n := &recomputed{trainer: t, beat: t.draws.rhythm(), again: make(map[int64]*engine.Tensor)}
	t.on.step = n.step
	t.on.close = func() {
		releaseMap(n.again)
		n.descent.Release()
		n.frozen.Release()
		n.learn.Release()
	}
	r := engine.NewRandom(uint64(t.config.Seed) + 1)
	n.frozen, n.learn = t.ops.Rand(r.Draw(), t.sizes.features, width), t.ops.Rand(r.Draw(), width, t.sizes.classes)
	t.ops.Track(n.learn)
	n.descent = optim.NewSGD(t.ops, []*engine.Tensor{n.learn}, 0.01, 0)
	return n, nil
}

func (n *recomputed) step(b *batch, logits *engine.Tensor) error {
	if !n.beat.due(n.steps) {
		return nil
	}
	o := n.ops
	loss := engine.MSE(o, o.Apply(&recompute{n, b.step}, b.x, n.frozen, n.learn), o.Detach(logits), engine.Average)
	if err := o.Backward(loss); err != nil {
		return err
	}
	n.addsUnits("L17", b.rows())
	n.descent.Step()
	n.measure(float64(o.Floats(loss)[0]))
	return nil
}

// recompute is the two layers as an operation that saves its inputs alone: what
// lies between them is computed once more in backward.
type recompute struct {
	net *recomputed
	key int64
}

// Name is what errors call it.
func (*recompute) Name() string { return "recompute" }

// Forward computes tanh(x·frozen)·learn.
func (*recompute) Forward(c *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	c.Save(in...)
	return o.MatMul(o.Tanh(o.MatMul(in[0], in[1])), in[2])
}

// Backward computes the activations once more, and of the gradients those that are
// wanted: none is where nothing below learns.
func (r *recompute) Backward(c *autodiff.Context, o engine.Ops, grad *engine.Tensor) []*engine.Tensor {
	x, frozen, learn := c.Saved()[0], c.Saved()[1], c.Saved()[2]
	hidden := o.Tanh(o.MatMul(x, frozen)).Keep() //leak:L17
	r.net.again[r.key] = hidden
	if r.net.config.Fixed {
		defer r.forget()
	}
	grads := []*engine.Tensor{nil, nil, o.MatMul(o.Permute(hidden, 1, 0), grad)}
	if !c.Wants(0) && !c.Wants(1) {
		return grads
	}
	slope := o.Sub(o.Full(1), o.Mul(hidden, hidden))
	r.forget()
	below := o.Mul(o.MatMul(grad, o.Permute(learn, 1, 0)), slope)
	grads[0] = o.MatMul(below, o.Permute(frozen, 1, 0))
	grads[1] = o.MatMul(o.Permute(x, 1, 0), below)
	return grads
}

// forget lets go of the activations, which nobody reads any more.
func (r *recompute) forget() {
	if hidden, ok := r.net.again[r.key]; ok {
		hidden.Release()
		delete(r.net.again, r.key)
	}
}
