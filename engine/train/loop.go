// Package train runs training loops: it marks the barriers between steps, and
// what looks at a run hangs on those.
package train

import (
	"context"
	"fmt"
	"time"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Metrics is what one training step says of itself. What may rightly drive its
// memory goes into the mark of the barrier behind it.
type Metrics struct {
	Loss           float64
	Epoch          int64 // that the step belongs to, from 0
	BatchElements  int64 // of the step's input; 0 where that says nothing
	SequenceLength int64 // 0 where there is no sequence
}

// Loop trains step by step. Between two steps is a barrier: the device has
// finished, temporaries are gone, and the hooks run.
type Loop struct {
	Devices []*mem.Device    // are told of every mark
	Now     func() time.Time // stamps the marks; nil for none

	hooks []func(snapshot.Mark) error
}

// OnBarrier has f called at every barrier, after the hooks that were added
// before. An error ends the run.
func (l *Loop) OnBarrier(f func(snapshot.Mark) error) { l.hooks = append(l.hooks, f) }

// Run trains for a number of steps. The first barrier comes before the first
// step, with Mark.Step 0; the one after step k has k, the steps completed. step
// returns when the device has finished. An error of a step or a hook ends the run
// and says at which step; ctx ends it between two steps, with its error.
func (l *Loop) Run(ctx context.Context, steps int64, step func() (Metrics, error)) error {
	if err := l.barrier(0, Metrics{}); err != nil {
		return err
	}
	for k := int64(1); k <= steps; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := step()
		if err != nil {
			return fmt.Errorf("step %d: %w", k, err)
		}
		if err := l.barrier(k, m); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) barrier(completed int64, m Metrics) error {
	mark := snapshot.Mark{
		Step: completed, Epoch: m.Epoch, Phase: "train",
		BatchElements: m.BatchElements, SequenceLength: m.SequenceLength,
	}
	if l.Now != nil {
		mark.Time = l.Now()
	}
	for _, d := range l.Devices {
		d.SetMark(mark)
	}
	for _, hook := range l.hooks {
		if err := hook(mark); err != nil {
			return fmt.Errorf("barrier after step %d: %w", completed, err)
		}
	}
	return nil
}
