package engine_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
)

// Training is a device, operations on it that record, a model, an optimizer, and
// steps in which everything but the model is temporary.
func Example() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(0), device)) // 0: one thread a core
	random := engine.NewRandom(1)

	var layer *nn.Linear
	err := engine.Run(o, func(*engine.Scope) error {
		layer = nn.NewLinear(o, random, 2, 1)
		nn.Keep(layer) // out of the scope, which would release it
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	o.Track(layer.Parameters()...) // gradients gather here
	adam := optim.NewAdam(o, layer.Parameters(), 0.1)

	var first, last float32
	for step := range 200 {
		err := engine.Run(o, func(*engine.Scope) error {
			x := o.Rand(random.Draw(), 32, 2)
			want := o.Reshape(o.Sum(x, 1), 32, 1) // to be learnt: the sum of two numbers
			loss := engine.MSE(o, layer.Forward(o, x), want, engine.Average)
			if err := o.Backward(loss); err != nil {
				return err
			}
			adam.Step()
			last = o.Floats(loss)[0]
			return nil
		}) // all that the step computed is released, also if it fails
		if err != nil {
			fmt.Println(err)
			return
		}
		if step == 0 {
			first = last
		}
	}
	fmt.Println("learnt:", first > 0.1 && last < 1e-3)

	adam.Release()
	nn.Release(layer)
	fmt.Println("nothing is left:", device.Close() == nil)
	// Output:
	// learnt: true
	// nothing is left: true
}

// What an operation cannot do is an error of the step, with the operation, the
// shapes and the way out.
func ExampleRun() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), device)
	fmt.Println(engine.Run(o, func(*engine.Scope) error {
		o.MatMul(o.Full(1, 2, 3), o.Full(1, 2, 3))
		return nil
	}))
	var kept *engine.Tensor
	err := engine.Run(o, func(s *engine.Scope) error {
		x := o.FromFloats([]float32{1, 2, 3}, 3)
		kept = s.Keep(o.Mul(x, x)) // the caller owes its Release
		return nil
	})
	fmt.Println(o.Floats(kept), err, device.Meters().Requested)
	kept.Release()
	fmt.Println(device.Close())
	// Output:
	// matmul of [2 3] and [2 3]: [… m k] and [… k n] are needed, with equal k
	// [1 4 9] <nil> 12 B
	// <nil>
}
