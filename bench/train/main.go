//go:build unix

// Command train times training steps of the example models for bench/train.sh.
//
//	train MODEL THREADS STEPS [record DIR]
//
// trains on the processor, or on the first GPU where THREADS is "gpu". It prints in microseconds the median and the mean time of a step, then both again of
// the processor time that the process took. With record it keeps stacks and
// counters, and writes all blocks every 50 steps, as memdiag record does; without,
// the device does not even capture stacks.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/gpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/model"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 && len(args) != 5 {
		return fmt.Errorf("want MODEL THREADS STEPS [record DIR], not %q", args)
	}
	kernels, driver, err := backend(args[1])
	if err != nil {
		return err
	}
	steps, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	record := len(args) == 5
	device := mem.NewDevice(driver, mem.Options{Untracked: !record})
	o := autodiff.New(engine.NewEager(kernels, device))
	var m nn.Stateful
	var loss func() *engine.Tensor
	err = engine.Run(o, func(*engine.Scope) error {
		if m, loss = build(o, args[0]); m == nil {
			return fmt.Errorf("there is no model %q; take mlp, conv or transformer", args[0])
		}
		nn.Keep(m)
		return nil
	})
	if err != nil {
		return err
	}
	o.Track(m.Parameters()...)
	descent := optim.NewSGD(o, m.Parameters(), 0.01, 0.9)
	barrier := func(int64) error { return nil }
	if record {
		out, err := rundir.Create(args[4], snapshot.Info{})
		if err != nil {
			return err
		}
		recorder, err := train.NewRecorder(out, 50, steps, nil, device)
		if err != nil {
			return err
		}
		defer func() { _ = recorder.Wait() }()
		barrier = func(step int64) error {
			mark := snapshot.Mark{Step: step}
			device.SetMark(mark)
			return recorder.Barrier(mark)
		}
	}
	times, processor := make([]time.Duration, steps), make([]time.Duration, steps)
	for step := range steps {
		busy, err := processorTime()
		if err != nil {
			return err
		}
		began := time.Now()
		err = engine.Run(o, func(*engine.Scope) error {
			if err := o.Backward(loss()); err != nil {
				return err
			}
			descent.Step()
			return o.Sync()
		})
		if err == nil {
			err = barrier(step + 1)
		}
		if err != nil {
			return err
		}
		times[step] = time.Since(began)
		now, err := processorTime()
		if err != nil {
			return err
		}
		processor[step] = now - busy
	}
	warm := steps / 5
	median, mean := summary(times[warm:])
	medianBusy, meanBusy := summary(processor[warm:])
	fmt.Println(median.Microseconds(), mean.Microseconds(), medianBusy.Microseconds(), meanBusy.Microseconds())
	return nil
}

// backend is the GPU, or the processor with so many threads.
func backend(which string) (engine.Kernels, mem.Driver, error) {
	if which == "gpu" {
		d, err := gpu.Open()
		if err != nil {
			return nil, nil, err
		}
		return gpu.New(d), d, nil
	}
	threads, err := strconv.Atoi(which)
	return cpu.New(threads), mem.Host(), err
}

// processorTime is what all threads of the process took so far.
func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// summary sorts the times.
func summary(times []time.Duration) (median, mean time.Duration) {
	total := time.Duration(0)
	for _, t := range times {
		total += t
	}
	slices.Sort(times)
	return times[len(times)/2], total / time.Duration(len(times))
}

// build returns a model and its loss on a batch that is uploaded anew each time,
// as a loader would.
func build(o engine.Ops, name string) (nn.Stateful, func() *engine.Tensor) {
	r := engine.NewRandom(1)
	switch name {
	case "mlp":
		m := model.NewMLP(o, r)
		x, y := floats(64*784), labels(64, 10)
		return m, func() *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, o.FromFloats(x, 64, 784)), o.FromInts(y, 64), nil)
		}
	case "conv":
		m := model.NewConvNet(o, r)
		x, y := floats(32*3*32*32), labels(32, 10)
		return m, func() *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, o.FromFloats(x, 32, 3, 32, 32), nn.Train), o.FromInts(y, 32), nil)
		}
	case "transformer":
		m := model.NewTransformer(o, r)
		x, y := labels(8*64, model.TransformerVocabulary), labels(8*64, model.TransformerVocabulary)
		return m, func() *engine.Tensor {
			logits := m.Forward(o, o.FromInts(x, 8, 64), nn.Train, nil)
			return engine.CrossEntropy(o, o.Reshape(logits, 8*64, model.TransformerVocabulary), o.FromInts(y, 8*64), nil)
		}
	}
	return nil, nil
}

// floats and labels are fixed pseudo-random batches: their values do not matter
// for time, but zeros would.
func floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i*2654435761%1000)/500 - 1
	}
	return out
}

func labels(n, classes int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i * 7919 % classes)
	}
	return out
}
