package data_test

import (
	"fmt"
	"log"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/mem"
)

// squares is a data set of five examples: a number and its square.
type squares struct{}

func (squares) Len() int { return 5 }

func (squares) Example(i int) ([]data.Array, error) {
	x := float32(i)
	return []data.Array{{Shape: []int{1}, Floats: []float32{x}}, {Floats: []float32{x * x}}}, nil
}

// A loader goes through a data set epoch after epoch. Each batch is in the scope
// of the step that trains on it.
func ExampleLoader() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), device)
	loader, err := data.NewLoader(squares{}, data.Options{Batch: 2, Partial: true, Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		err := engine.Run(o, func(*engine.Scope) error {
			b, err := loader.Next(o)
			if err != nil {
				return err
			}
			x, y := b.Tensors[0], b.Tensors[1]
			fmt.Println("epoch", b.Epoch, x.Shape(), o.Floats(x), o.Floats(y), b.EpochEnd)
			return o.Sync()
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	loader.Close()
	fmt.Println("left on the device:", device.Meters().Allocated)
	// Output:
	// epoch 0 [2 1] [0 1] [0 1] false
	// epoch 0 [2 1] [2 3] [4 9] false
	// epoch 0 [1 1] [4] [16] true
	// epoch 1 [2 1] [0 1] [0 1] false
	// left on the device: 0 B
}
