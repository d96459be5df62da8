package engine_test

import (
	"math"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// notByDifferences are cases whose gradient differs from the differences of values nearby.
var notByDifferences = map[string]string{
	"relu, with a 0": "at the corner the difference is 1/2, the gradient 0",
	"detach":         "values nearby move with what is detached",
}

// TestGradientsAreCentralDifferences holds the same cases against the engine's
// own values nearby, so that no gradient rests on PyTorch's conventions alone.
func TestGradientsAreCentralDifferences(t *testing.T) {
	const (
		step      = 1e-2
		tolerance = 4e-3 // of the larger of 1 and the difference
	)
	for _, c := range readGolden(t).Cases {
		if c.Grad == nil || notByDifferences[c.Name] != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			// value is the weighted sum of what the gradient is of, summed in float64.
			value := func() (sum float64) {
				run(t, o, func() error {
					in := make([]*engine.Tensor, len(c.In))
					for i, a := range c.In {
						in[i] = a.upload(o)
					}
					for i, out := range goldenCases[c.Name].f(o.Valid(), in) {
						if !differentiable(c.Name, i) {
							continue
						}
						for j, v := range o.Floats(out) {
							sum += float64(v) * (0.5 + float64(j%7)/8)
						}
					}
					return nil
				})
				return sum
			}
			for i, grad := range c.Grad {
				if grad == nil {
					continue
				}
				host := c.In[i].Floats
				for j, x := range host {
					host[j] = x + step
					above := value()
					host[j] = x - step
					below := value()
					host[j] = x
					want := (above - below) / float64((x+step)-(x-step))
					if got := float64(grad.Floats[j]); math.Abs(got-want) > tolerance*max(1, math.Abs(want)) {
						t.Errorf("input %d element %d: gradient %g, central difference %g", i, j, got, want)
					}
				}
			}
			if got := enginetest.Live(d); got != 0 {
				t.Errorf("%d blocks are left", got)
			}
		})
	}
}

// differentiable reports whether the case's gradient is of this result too: the
// running moments of a layer are none of it.
func differentiable(name string, result int) bool {
	return result == 0 || name != "batch norm layer in training" && name != "batch norm layer in evaluation"
}

func run(t *testing.T, o engine.Ops, f func() error) {
	t.Helper()
	if err := engine.Run(o, func(*engine.Scope) error { return f() }); err != nil {
		t.Fatal(err)
	}
}
