package comm_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
)

// Two ranks train one layer, each on batches of its own: they begin with the
// same weights, of one seed, and take each step by the mean of their gradients.
func ExampleGroup_Run() {
	devices := comm.Devices(2, mem.Host(), mem.Options{})
	group := comm.NewGroup(func() engine.Kernels { return cpu.New(1) }, devices...)
	weights := make([][]float32, 2)
	err := group.Run(context.Background(), func(r *comm.Rank) error {
		o := autodiff.New(r.Ops())
		var layer *nn.Linear
		if err := engine.Run(o, func(*engine.Scope) error {
			layer = nn.NewLinear(o, engine.NewRandom(1), 3, 1)
			nn.Keep(layer)
			return nil
		}); err != nil {
			return err
		}
		defer nn.Release(layer)
		o.Track(layer.Parameters()...)
		random := engine.NewRandom(uint64(r.Index()))
		sgd := optim.NewSGD(o, layer.Parameters(), 0.1, 0)
		for range 10 {
			if err := engine.Run(o, func(*engine.Scope) error {
				x := o.Rand(random.Draw(), 8, 3)
				loss := engine.MSE(o, layer.Forward(o, x), o.Full(1, 8, 1), engine.Average)
				if err := o.Backward(loss); err != nil {
					return err
				}
				if err := r.AverageGradients(layer.Parameters()); err != nil {
					return err
				}
				sgd.Step()
				return o.Sync()
			}); err != nil {
				return err
			}
		}
		weights[r.Index()] = o.Floats(layer.Weight)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("equal to the bit:", slices.Equal(weights[0], weights[1]))
	for _, d := range devices {
		fmt.Println("left on the device:", d.Meters().Allocated)
	}
	// Output:
	// equal to the bit: true
	// left on the device: 0 B
	// left on the device: 0 B
}
