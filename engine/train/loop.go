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
// memory goes into the mark of the barrier after it.
type Metrics struct {
	Loss           float64
	Epoch          int64 // that the step belongs to, from 0
	EpochEnd       bool  // it is the last step of its epoch
	BatchElements  int64 // of the step's input; 0 where that says nothing
	SequenceLength int64 // 0 where there is no sequence
}

// Loop trains step by step. Between two steps is a barrier: the device has
// finished, temporaries are gone, and the hooks run.
type Loop struct {
	Devices []*mem.Device    // get every mark
	Now     func() time.Time // stamps the marks; nil for none
	// Start is how many steps an earlier run has completed, and this one is its
	// continuation.
	Start  int64
	Phases []Phase // run between steps when due, in this order

	onBarrier []func(snapshot.Mark) error
}

// OnBarrier has f called at every barrier, after the hooks that were added
// before. An error ends the run.
func (l *Loop) OnBarrier(f func(snapshot.Mark) error) { l.onBarrier = append(l.onBarrier, f) }

// Run trains until so many steps are completed, those before Start included. The
// first barrier comes before the first step, with Mark.Step Start; the one after
// step k has k, the steps completed. step returns when the device has finished.
// An error of a step, a hook or a phase ends the run and says at which step; ctx
// ends it between two steps, with its error. A panic goes through, and leaves what
// the step's own scopes leave: nothing, where it runs in engine.Run.
func (l *Loop) Run(ctx context.Context, steps int64, step func() (Metrics, error)) error {
	if _, err := l.barrier(Training, l.Start, Metrics{}); err != nil {
		return err
	}
	for k := l.Start + 1; k <= steps; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := step()
		if err != nil {
			return fmt.Errorf("step %d: %w", k, err)
		}
		if err := l.afterStep(ctx, k, m); err != nil {
			return err
		}
	}
	return nil
}

// afterStep does what comes after a training step.
func (l *Loop) afterStep(ctx context.Context, completed int64, m Metrics) error {
	if _, err := l.barrier(Training, completed, m); err != nil {
		return err
	}
	return l.phases(ctx, completed, m)
}

func (l *Loop) barrier(phase string, completed int64, m Metrics) (snapshot.Mark, error) {
	mark := snapshot.Mark{
		Step: completed, Epoch: m.Epoch, Phase: phase,
		BatchElements: m.BatchElements, SequenceLength: m.SequenceLength,
	}
	if l.Now != nil {
		mark.Time = l.Now()
	}
	for _, d := range l.Devices {
		d.SetMark(mark)
	}
	for _, hook := range l.onBarrier {
		if err := hook(mark); err != nil {
			return mark, fmt.Errorf("barrier after step %d: %w", completed, err)
		}
	}
	return mark, nil
}
