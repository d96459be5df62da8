package workload

import (
	"errors"
	"testing"

	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// TestNodesAStepAsBurnCountedThem trains with what L04 does, with what L05 does
// and with both, under the rules of the time and those of the fixes after.
func TestNodesAStepAsBurnCountedThem(t *testing.T) {
	for _, c := range []struct {
		name          string
		rules         registry.Rules
		replace, hold bool
		want          float64
	}{
		{"original rules: two parameters replaced", registry.RulesOriginal, true, false, 2},
		{"original rules: one output held", registry.RulesOriginal, false, true, 1},
		{"original rules: both", registry.RulesOriginal, true, true, 3},
		{"roots are cleared (#2347): the held output is left", registry.RulesRoots, true, true, 1},
		{"nodes without parents are cleared (#2488): nothing is left", registry.RulesAbsentParents, true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mem.NewDevice(mem.Host(), mem.Options{})
			n, err := newRegistryNet(Config{Seed: 5, Device: d, Kernels: cpu.New(1)}, registryOptions{draws: draws{"L04", 5}, rules: c.rules, beat: rhythm{1, 1}, replace: c.replace, hold: c.hold})
			if err != nil {
				t.Fatal(err)
			}
			run := func(steps int) {
				for range steps {
					if _, err := n.Step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			const steps = 500
			run(5)
			before := n.tape.Nodes()
			run(steps)
			if got := float64(n.tape.Nodes()-before) / steps; got != c.want {
				t.Errorf("%.3f nodes a step, want %.3f", got, c.want)
			}
			if err := errors.Join(n.Close(), d.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
