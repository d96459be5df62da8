package registry_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// An optimizer that replaces a parameter by a new leaf leaves the old one in the
// registry (burn#2333), until the rules free leaves that nothing refers to.
func Example() {
	for _, rules := range []registry.Rules{registry.RulesOriginal, registry.RulesRoots} {
		device := mem.NewDevice(mem.Host(), mem.Options{})
		r := registry.New(registry.Options{Rules: rules})
		o := autodiff.NewOn(engine.NewEager(cpu.New(1), device), r)
		w := o.Full(1, 3)
		o.Track(w)
		for range 100 {
			err := engine.Run(o, func(*engine.Scope) error {
				loss := engine.Tidy(o, func() *engine.Tensor { return o.Sum(o.Mul(w, w)) })
				if err := o.Backward(loss); err != nil {
					return err
				}
				v := o.Valid()
				next := v.Sub(w, engine.Scale(v, autodiff.Grad(w), 0.1)).Keep()
				w.Release()
				w = next
				o.Track(w)
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println(r.Nodes(), "nodes")
		w.Release()
		if err := device.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 101 nodes
	// 2 nodes
}
