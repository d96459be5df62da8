package registry_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// sweeping sweeps in the middle of operations: between their start, when the
// operands have been chosen, and the registration of their results. burn#5573 lost
// a gradient there.
type sweeping struct {
	engine.Ops
	registry *registry.Registry
}

func (s sweeping) Exp(a *engine.Tensor) *engine.Tensor {
	s.registry.Sweep()
	defer s.registry.Sweep()
	return s.Ops.Exp(a)
}

func (s sweeping) Mul(a, b *engine.Tensor) *engine.Tensor {
	s.registry.Sweep()
	defer s.registry.Sweep()
	return s.Ops.Mul(a, b)
}

func TestASweepInTheMiddleOfAnOperationLosesNoGradient(t *testing.T) {
	for rules := registry.RulesOriginal; rules <= registry.RulesLatest; rules++ {
		inner, _ := enginetest.NewEager(t)
		r := registry.New(registry.Options{Rules: rules})
		o := autodiff.NewOn(sweeping{inner, r}, r)
		if err := chain(o, 0.5, 2); err != nil {
			t.Errorf("rules %d: %v", rules, err)
		}
		r.Sweep()
		orphans := 0
		if rules == registry.RulesOriginal {
			orphans = 1 // the leaf
		}
		if got := r.Nodes(); got != orphans {
			t.Errorf("rules %d: %d nodes are left, want %d", rules, got, orphans)
		}
	}
}

// TestSweepsOfOtherGoroutinesLoseNoGradient is made for the race detector.
func TestSweepsOfOtherGoroutinesLoseNoGradient(t *testing.T) {
	for rules := registry.RulesOriginal; rules <= registry.RulesLatest; rules++ {
		r := registry.New(registry.Options{Rules: rules})
		var workers sync.WaitGroup
		for worker := range 4 {
			inner, _ := enginetest.NewEager(t)
			o := autodiff.NewOn(inner, r)
			workers.Go(func() {
				for step := range 60 {
					if err := chain(o, 0.1*float32(worker+1), 1+step%5); err != nil {
						t.Errorf("rules %d, worker %d, step %d: %v", rules, worker, step, err)
						return
					}
				}
			})
		}
		stop := make(chan struct{})
		var counter sync.WaitGroup
		counter.Go(func() { // somebody who looks on, and sweeps more often than they do
			for {
				select {
				case <-stop:
					return
				default:
					r.Stats()
					r.Sweep()
				}
			}
		})
		workers.Wait()
		close(stop)
		counter.Wait()
		for range 3 {
			r.Sweep()
		}
		if got := r.Stats(); got.Nodes != 0 && rules >= registry.RulesAbsentParents || got.Pending != 0 || got.Saved != 0 {
			t.Errorf("rules %d: %+v is left", rules, got)
		}
	}
}

// chain differentiates exp(x·2^links), made by squaring exp(x), twice: recorded
// and checkpointed. What it computes on the way is dropped as early as can be. It
// fails if the gradient is another than 2·2^links·exp(x·2^links).
func chain(o *autodiff.Ops, at float32, links int) error {
	return engine.Run(o, func(*engine.Scope) error {
		x := o.Full(at/float32(int(1)<<links), 16)
		o.Track(x)
		power := func(x *engine.Tensor) *engine.Tensor {
			y := o.Exp(x)
			for range links {
				next := o.Mul(y, y)
				y.Release()
				y = next
			}
			return y
		}
		plain := power(x)
		kept := o.Checkpoint(func(in ...*engine.Tensor) *engine.Tensor { return power(in[0]) }, x)
		want := 2 * float64(int(1)<<links) * float64(o.Floats(plain)[0])
		loss := engine.Tidy(o, func() *engine.Tensor { return o.Sum(o.Add(plain, kept)) })
		plain.Release()
		kept.Release()
		if err := o.Backward(loss); err != nil {
			return err
		}
		g := autodiff.Grad(x)
		if g == nil {
			return fmt.Errorf("the gradient is lost")
		}
		for i, got := range o.Floats(g) {
			if d := float64(got) - want; d > 1e-4*want || d < -1e-4*want {
				return fmt.Errorf("gradient %d is %g, want %g", i, got, want)
			}
		}
		return nil
	})
}
