package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

// optimizers are programs whose optimizer or gradients take memory, rightly.
func optimizers() []Workload {
	state := func(id, alias, title string, attach func(*trainer) (any, error)) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Bounded, Cause: "optimizer-state",
			Truth: func(seed int64) Truth {
				d := draws{id, seed}
				g := copyGrowth(id, d.sizes())
				g.Event, g.Owner = PerRebuild, snapshot.OwnedByOptim
				copies := int64(1 + d.optimizer())
				g.Blocks, g.Bytes = copies*g.Blocks, snapshot.Bytes(copies)*g.Bytes
				g.Bound = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: shared(id, attach),
		}
	}
	return []Workload{
		state("D01", "optimizer-state", "the optimizer makes its state in the first step", func(t *trainer) (any, error) {
			t.adds("D01")
			return t, nil
		}),
		state("D02", "state-after-warm-up", "the optimizer makes its first step, and its state, after a warm-up", func(t *trainer) (any, error) {
			// The gradients of the warm-up make one step together.
			t.accumulate = int64(t.draws.between("warm-up", 20, 60))
			t.on.step = func(*batch, *engine.Tensor) error {
				if t.steps == t.accumulate {
					t.accumulate = 1
					t.adds("D02")
				}
				return nil
			}
			return t, nil
		}),
		{
			ID: "D13", Alias: "averages-start", Title: "a moving average of the parameters begins after some epochs",
			Label: Bounded, Cause: "optimizer-state",
			Truth: func(seed int64) Truth {
				d := draws{"D13", seed}
				g := copyGrowth("D13", d.sizes())
				g.Event, g.Owner = PerRebuild, snapshot.OwnedByOptim
				g.Bound = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: 150, Growth: []Growth{g}}
			},
			New: shared("D13", func(t *trainer) (any, error) {
				averages := optim.NewEMA(t.ops, t.model.Parameters(), 0.99)
				start := averagesFrom(t.draws)
				t.on.step = func(*batch, *engine.Tensor) error {
					if t.steps >= start {
						averages.Update() //held:D13
					}
					return nil
				}
				t.on.evaluation = func() error {
					averages.Swap()
					defer averages.Swap()
					v := t.ops.Valid()
					b := t.data.heldOut(0).upload(v)
					t.measure(float64(v.Floats(engine.CrossEntropy(v, t.forward(v, b), b.labels, nil))[0]))
					return nil
				}
				t.on.close = averages.Release
				return averages, nil
			}),
		},
		{
			ID: "L27", Alias: "stale-optimizer-state", Title: "an adapter is replaced after each epoch, and the optimizer keeps the old one's state",
			Label: Leak, Cause: "optimizer-state-stale",
			Truth: func(seed int64) Truth {
				s := draws{"L27", seed}.sizes()
				g := Growth{
					Marker: "L27", Event: PerRebuild, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * s.classes), Shape: Linear,
					Owner: snapshot.OwnedByOptim,
				}
				g.Rest = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: runFor(10, int64(s.epoch)), Growth: []Growth{g}}
			},
			New: shared("L27", newAdapters),
		},
		{
			ID: "D07", Alias: "gradient-accumulation", Title: "several batches give their gradients to one step of the optimizer",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D07", seed}
				g := copyGrowth("D07", d.sizes())
				g.Event, g.Owner = PerStep, snapshot.OwnedByGrad
				g.Bound = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: shared("D07", func(t *trainer) (any, error) {
				t.accumulate = int64(t.draws.between("accumulate", 2, 8))
				t.on.step = func(*batch, *engine.Tensor) error {
					t.adds("D07")
					return nil
				}
				return t, nil
			}),
		},
	}
}

// averagesFrom draws the step at which a moving average begins.
func averagesFrom(d draws) int64 { return int64(d.between("start", 25, 60)) }

// adapters learns an offset of the logits, anew in each epoch, while the rest stays
// as it is.
type adapters struct {
	*trainer
	offset  *engine.Tensor // [classes]; nil after an epoch
	descent *optim.SGD
}

func newAdapters(t *trainer) (any, error) {
	a := &adapters{trainer: t, descent: optim.NewSGD(t.ops, nil, 0.1, 0.9)}
	t.on.step, t.on.epoch = a.step, a.epoch
	t.on.close = func() {
		a.drop()
		a.descent.Release()
	}
	return a, nil
}

func (a *adapters) drop() {
	if a.offset != nil {
		a.offset.Release()
		a.offset = nil
	}
}

func (a *adapters) step(b *batch, logits *engine.Tensor) error {
	o := a.ops
	if a.offset == nil {
		a.offset = o.Full(0, a.sizes.classes).Keep()
		o.Track(a.offset)
		a.descent.Add(a.offset)
		a.adds("L27")
	}
	loss := engine.CrossEntropy(o, o.Add(o.Detach(logits), a.offset), b.labels, nil)
	if err := o.Backward(loss); err != nil {
		return err
	}
	a.descent.Step() //leak:L27
	a.measure(float64(o.Floats(loss)[0]))
	return nil
}

// epoch lets the adapter go.
func (a *adapters) epoch() error {
	if a.config.Fixed {
		a.descent.Forget(a.offset)
	}
	a.drop()
	return nil
}
