package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

// optimizers are programs whose optimizer or gradients take memory, rightly.
func optimizers() []Workload {
	return []Workload{
		{
			ID: "D01", Alias: "optimizer-state", Title: "the optimizer makes its state in the first step",
			Label: Bounded, Cause: "optimizer-state",
			Truth: func(seed int64) Truth {
				d := draws{"D01", seed}
				g := copyGrowth("D01", d.sizes())
				g.Event, g.Owner = PerRebuild, snapshot.OwnedByOptim
				copies := int64(1 + d.optimizer())
				g.Blocks, g.Bytes = copies*g.Blocks, snapshot.Bytes(copies)*g.Bytes
				g.Bound = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: shared("D01", func(t *trainer) (any, error) {
				t.adds("D01")
				return t, nil
			}),
		},
		{
			ID: "D02", Alias: "averages-after-warm-up", Title: "a moving average of the parameters begins after some epochs",
			Label: Bounded, Cause: "optimizer-state",
			Truth: func(seed int64) Truth {
				d := draws{"D02", seed}
				g := copyGrowth("D02", d.sizes())
				g.Event, g.Owner = PerRebuild, snapshot.OwnedByOptim
				g.Bound = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: 150, Growth: []Growth{g}}
			},
			New: shared("D02", func(t *trainer) (any, error) {
				averages := optim.NewEMA(t.ops, t.model.Parameters(), 0.99)
				start := averagesFrom(t.draws)
				t.on.step = func(*batch, *engine.Tensor) error {
					if t.steps >= start {
						averages.Update() //held:D02
					}
					return nil
				}
				t.on.close = averages.Release
				return averages, nil
			}),
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
