package engine_test

import (
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/optim"
)

// goldenSequence is some steps of a PyTorch optimizer on two parameters.
type goldenSequence struct {
	Name      string
	Start     []array
	Gradients [][]*array // by step and parameter; nil where it has none
	After     [][]array  // by step and parameter
	Averages  [][]array  // the same, of the moving average
}

// TestOptimizersFollowPyTorch holds ten steps of each optimizer against PyTorch's,
// state and blocks included: from the second step on, none is added.
func TestOptimizersFollowPyTorch(t *testing.T) {
	type optimizer interface {
		Step()
		Release()
	}
	makers := map[string]func(o engine.Ops, p []*engine.Tensor) optimizer{
		"sgd":               func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewSGD(o, p, 0.1, 0) },
		"sgd with momentum": func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewSGD(o, p, 0.1, 0.9) },
		"adam":              func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewAdam(o, p, 0.05) },
		"adam with other betas and epsilon": func(o engine.Ops, p []*engine.Tensor) optimizer {
			a := optim.NewAdam(o, p, 0.05)
			a.Beta1, a.Beta2, a.Epsilon = 0.5, 0.8, 0.1
			return a
		},
		"adamw": func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewAdamW(o, p, 0.05, 0.3) },
		"an exponential moving average": func(o engine.Ops, p []*engine.Tensor) optimizer {
			return optim.NewSGD(o, p, 0.1, 0)
		},
	}
	sequences := readGolden(t).Sequences
	if len(sequences) != len(makers) {
		t.Errorf("golden.json has %d sequences, the test %d", len(sequences), len(makers))
	}
	for _, s := range sequences {
		t.Run(s.Name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			var params []*engine.Tensor
			for _, a := range s.Start {
				params = append(params, a.upload(o))
			}
			o.Track(params...)
			descent := makers[s.Name](o, params)
			average := optim.NewEMA(o, params, 0.75)
			settled := int64(0)
			for step, gradients := range s.Gradients {
				err := engine.Run(o, func(*engine.Scope) error {
					loss := o.Full(0)
					for i, g := range gradients {
						if g != nil {
							loss = o.Add(loss, o.Sum(o.Mul(params[i], g.upload(o))))
						}
					}
					if err := o.Backward(loss); err != nil {
						return err
					}
					descent.Step()
					if s.Averages != nil {
						average.Update()
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for i, p := range params {
					compare(t, "parameter", o, p, s.After[step][i], forwardTolerance)
					if s.Averages != nil {
						compare(t, "average", o, average.Average(p), s.Averages[step][i], forwardTolerance)
					}
				}
				// The second parameter's first gradient comes with the second step.
				if step == 1 {
					settled = enginetest.Live(d)
				}
				if got := enginetest.Live(d); step > 1 && got != settled {
					t.Errorf("%d blocks are live after step %d, %d after the second", got, step, settled)
				}
			}
			descent.Release()
			average.Release()
			for _, p := range params {
				p.Release()
			}
		})
	}
}
