package metric_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/metric"
)

// A metric gathers on the device over many batches and is read once.
func ExampleAccuracy() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), device)
	accuracy := metric.NewAccuracy(o)
	for _, labels := range [][]int32{{0, 1}, {1, 1}} {
		err := engine.Run(o, func(*engine.Scope) error {
			logits := o.FromFloats([]float32{3, 1, -1, 2}, 2, 2) // says 0, then 1
			accuracy.Update(logits, o.FromInts(labels, 2))
			return o.Sync()
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(accuracy.Compute())
	accuracy.Reset() // gives its two numbers back
	fmt.Println(device.Close())
	// Output:
	// 0.75
	// <nil>
}
