package autodiff_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// A gradient is gathered in each tensor that is tracked.
func Example() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(1), device))
	err := engine.Run(o, func(*engine.Scope) error {
		w := o.FromFloats([]float32{1, 2, 3}, 3)
		o.Track(w)
		loss := o.Sum(o.Mul(w, w))
		if err := o.Backward(loss); err != nil {
			return err
		}
		fmt.Println(o.Floats(loss), o.Floats(autodiff.Grad(w)))
		return o.Backward(loss)
	})
	fmt.Println(err)
	fmt.Println(o.Nodes(), device.Close())
	// Output:
	// [14] [2 4 6]
	// backward: sum was gone through before, and what it saved was released; compute the loss again, keep the graph, or Detach what comes from an earlier step
	// 0 <nil>
}

// A gradient of a gradient needs a pass that was recorded.
func ExampleOps_BackwardWith() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(1), device))
	err := engine.Run(o, func(*engine.Scope) error {
		x := o.Full(2)
		o.Track(x)
		cube := o.Mul(x, o.Mul(x, x))
		if err := o.BackwardWith(cube, autodiff.BackwardOptions{CreateGraph: true}); err != nil {
			return err
		}
		first := autodiff.Grad(x).Retain()
		defer first.Release()
		autodiff.ZeroGrad(x) // which held the graph that leads back to x
		if err := o.Backward(first); err != nil {
			return err
		}
		fmt.Println(o.Floats(first), o.Floats(autodiff.Grad(x)))
		return nil
	})
	fmt.Println(err, device.Close())
	// Output:
	// [12] [12]
	// <nil> <nil>
}

// Of 20 layers, a checkpoint saves the input; the rest is computed again when
// backward comes to it.
func ExampleOps_Checkpoint() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(1), device))
	layers := func(in ...*engine.Tensor) *engine.Tensor {
		x := in[0]
		for range 20 {
			x = o.Tanh(x)
		}
		return x
	}
	err := engine.Run(o, func(*engine.Scope) error {
		x := o.Full(1, 1024)
		o.Track(x)
		for _, checkpoint := range []bool{false, true} {
			before := device.Meters().Allocated
			loss := engine.Tidy(o, func() *engine.Tensor {
				if checkpoint {
					return o.Sum(o.Checkpoint(layers, x))
				}
				return o.Sum(engine.Tidy(o, func() *engine.Tensor { return layers(x) }))
			})
			fmt.Println(device.Meters().Allocated - before)
			if err := o.Backward(loss); err != nil {
				return err
			}
			loss.Release()
			autodiff.ZeroGrad(x)
		}
		return nil
	})
	fmt.Println(err, device.Close())
	// Output:
	// 80.5 KiB
	// 512 B
	// <nil> <nil>
}
