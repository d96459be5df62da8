package optim_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
)

// A layer learns y = 3x - 1 from four points.
func ExampleAdam() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(1), device))

	layer := nn.NewLinear(o, engine.NewRandom(1), 1, 1)
	o.Track(layer.Parameters()...)
	descent := optim.NewAdam(o, layer.Parameters(), 0.1)

	const steps = 400
	for range steps {
		err := engine.Run(o, func(*engine.Scope) error {
			x := o.FromFloats([]float32{-1, 0, 1, 2}, 4, 1)
			y := o.FromFloats([]float32{-4, -1, 2, 5}, 4, 1)
			loss := engine.MSE(o, layer.Forward(o, x), y, engine.Average)
			if err := o.Backward(loss); err != nil {
				return err
			}
			descent.Step()
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("y = %.2fx %+.2f\n", o.Floats(layer.Weight)[0], o.Floats(layer.Bias)[0])

	descent.Release()
	nn.Release(layer)
	fmt.Println("left on the device:", device.Close())
	// Output:
	// y = 3.00x -1.00
	// left on the device: <nil>
}
