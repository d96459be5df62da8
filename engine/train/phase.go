package train

import (
	"context"
	"fmt"

	"github.com/memdiag/memdiag/snapshot"
)

// The phases of a run, as marks name them. Marks of one phase can be compared.
const (
	Training      = "train"
	Evaluating    = "eval"
	Checkpointing = "checkpoint"
)

// Interval says after which training steps something is due. The zero Interval
// is never.
type Interval struct {
	Every    int64 // after every so many steps; 0 for none of them
	EpochEnd bool  // after the last step of each epoch
}

// due reports whether it is, so many steps being completed.
func (i Interval) due(completed int64, m Metrics) bool {
	return i.Every > 0 && completed%i.Every == 0 || i.EpochEnd && m.EpochEnd
}

// Phase is what runs between two training steps: a pass over data held out, a
// checkpoint. Behind each of its own steps is a barrier with the phase's mark,
// whose Step is the training's.
type Phase struct {
	Name  string // Evaluating, Checkpointing or the program's own
	When  Interval
	Steps int64 // of each time that it is due; 0 for 1
	// Step is called with 0 to Steps-1, and returns when the device has finished.
	Step func(i int64) (Metrics, error)
	// Done, if not nil, is called after the last step with the mean of their losses.
	Done func(mark snapshot.Mark, loss float64) error
}

// phases runs what is due after a training step.
func (l *Loop) phases(ctx context.Context, completed int64, m Metrics) error {
	for i := range l.Phases {
		p := &l.Phases[i]
		if !p.When.due(completed, m) {
			continue
		}
		if err := l.phase(ctx, p, completed, m.Epoch); err != nil {
			return fmt.Errorf("%s after step %d: %w", p.Name, completed, err)
		}
	}
	return nil
}

func (l *Loop) phase(ctx context.Context, p *Phase, completed, epoch int64) error {
	steps := max(1, p.Steps)
	var loss float64
	var mark snapshot.Mark
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := p.Step(i)
		if err != nil {
			return err
		}
		m.Epoch = epoch // the training's, whatever data the phase goes through
		loss += m.Loss / float64(steps)
		if mark, err = l.barrier(p.Name, completed, m); err != nil {
			return err
		}
	}
	if p.Done == nil {
		return nil
	}
	return p.Done(mark, loss)
}
