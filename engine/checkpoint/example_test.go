package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/checkpoint"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
)

// session trains a layer up to a number of steps, from the newest checkpoint in a
// folder if there is one, and returns the weights.
func session(dir string, steps int64) (weights []float32, err error) {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := autodiff.New(engine.NewEager(cpu.New(1), device))
	random := engine.NewRandom(1)
	var layer *nn.Linear
	err = engine.Run(o, func(*engine.Scope) error {
		layer = nn.NewLinear(o, random, 2, 1)
		nn.Keep(layer)
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer nn.Release(layer)
	adam := optim.NewAdam(o, layer.Parameters(), 0.1)
	defer adam.Release()

	completed := int64(0)
	if path, err := checkpoint.Latest(dir); err == nil {
		file, err := checkpoint.Read(path)
		if err != nil {
			return nil, err
		}
		err = engine.Run(o, func(*engine.Scope) error {
			if err := file.Restore(o, checkpoint.Part("layer", layer.State())); err != nil {
				return err
			}
			return adam.Load(file.UploadPart(o, "adam"))
		})
		if err != nil {
			return nil, err
		}
		random.Seek(file.Counters["draws"])
		completed = file.Step
	}
	fmt.Println("from step", completed)
	o.Track(layer.Parameters()...)

	w, err := checkpoint.NewWriter(dir, checkpoint.Options{Staging: checkpoint.OnHost, Keep: 2})
	if err != nil {
		return nil, err
	}
	loop := train.Loop{Devices: []*mem.Device{device}, Start: completed, Phases: []train.Phase{
		w.Phase(o, train.Interval{Every: 10}, func() checkpoint.State {
			return checkpoint.State{
				Step:     completed,
				Counters: map[string]uint64{"draws": random.Draws()},
				Tensors:  append(checkpoint.Part("layer", layer.State()), checkpoint.Part("adam", adam.State())...),
			}
		}),
	}}
	err = loop.Run(context.Background(), steps, func() (m train.Metrics, err error) {
		err = engine.Run(o, func(*engine.Scope) error {
			x := o.Rand(random.Draw(), 8, 2)
			loss := engine.MSE(o, layer.Forward(o, x), o.Reshape(o.Sum(x, 1), 8, 1), engine.Average)
			if err := o.Backward(loss); err != nil {
				return err
			}
			adam.Step()
			m.Loss = float64(o.Floats(loss)[0])
			return o.Sync()
		})
		completed++
		return m, err
	})
	if err != nil {
		return nil, err
	}
	return o.Floats(layer.Weight), w.Wait()
}

// A run that is stopped and resumed ends where one that was never stopped does.
func ExampleWriter_Phase() {
	var ends [2][]float32
	for i, stops := range [][]int64{{40}, {20, 40}} {
		dir, err := os.MkdirTemp("", "checkpoints")
		if err != nil {
			log.Fatal(err)
		}
		for _, steps := range stops {
			if ends[i], err = session(dir, steps); err != nil {
				log.Fatal(err)
			}
		}
		_ = os.RemoveAll(dir)
	}
	fmt.Println("equal to the bit:", slices.Equal(ends[0], ends[1]))
	// Output:
	// from step 0
	// from step 0
	// from step 20
	// equal to the bit: true
}
