//go:build !race

package gpu_test

// Training the corpus on a software driver takes ten times as long under the race
// detector; the kernels and the allocator are held by it in the other tests.

import (
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/gpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// growth is what a run has live of one growth of its truth, step by step.
type growth struct {
	blocks []int64
	bytes  []snapshot.Bytes
}

// trained is what one run of a workload was seen to do.
type trained struct {
	grown  []growth         // what the guilty lines hold at each barrier
	live   []snapshot.Bytes // on all devices, at each barrier
	losses []float64
}

// run trains a workload for some steps.
func run(t *testing.T, w workload.Workload, steps int64, driver mem.Driver, kernels func() engine.Kernels) (seen trained) {
	t.Helper()
	devices := comm.Devices(max(1, w.Ranks), driver, mem.Options{})
	config := workload.Config{Seed: 3, Device: devices[0], Kernels: kernels()}
	for _, d := range devices[1:] {
		config.Peers = append(config.Peers, workload.Peer{Device: d, Kernels: kernels()})
	}
	instance, err := w.New(config)
	if err != nil {
		t.Fatal(err)
	}
	truth := w.Truth(3).Growth
	seen.grown = make([]growth, len(truth))
	loop := train.Loop{Devices: devices}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	loop.OnBarrier(func(snapshot.Mark) error {
		for i, g := range truth {
			blocks, bytes := held(t, g.Marker, devices)
			seen.grown[i].blocks = append(seen.grown[i].blocks, blocks)
			seen.grown[i].bytes = append(seen.grown[i].bytes, bytes)
		}
		var live snapshot.Bytes
		for _, d := range devices {
			live += d.Meters().Allocated
		}
		seen.live = append(seen.live, live)
		return nil
	})
	err = loop.Run(t.Context(), steps, func() (train.Metrics, error) {
		m, err := instance.Step()
		seen.losses = append(seen.losses, m.Loss)
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = instance.Close()
	for _, d := range devices {
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		t.Error(err)
	}
	return seen
}

// held is what is live of stacks that pass through a marked line.
func held(t *testing.T, marker string, devices []*mem.Device) (blocks int64, bytes snapshot.Bytes) {
	t.Helper()
	file, line, err := workload.Line(marker)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		for _, s := range d.Counters(nil) {
			if slices.ContainsFunc(d.Stack(s.Site), func(f snapshot.Frame) bool { return f.File == file && f.Line == line }) {
				blocks += s.Count
				bytes += s.Bytes
			}
		}
	}
	return blocks, bytes
}

// backends trains a workload on the processor and on the GPU and compares what is live
// at each step, and the losses. It returns what the processor did.
func backends(t *testing.T, w workload.Workload, steps int64, d *gpu.Device) trained {
	t.Helper()
	want := run(t, w, steps, mem.Host(), func() engine.Kernels { return cpu.New(1) })
	got := run(t, w, steps, d, func() engine.Kernels { return gpu.New(d) })
	for i, g := range want.grown {
		if !slices.Equal(got.grown[i].blocks, g.blocks) || !slices.Equal(got.grown[i].bytes, g.bytes) {
			t.Errorf("growth %d: the gpu holds %v, the processor %v", i, got.grown[i], g)
		}
	}
	if !slices.Equal(got.live, want.live) {
		t.Errorf("on the gpu are live %v, on the processor %v", got.live, want.live)
	}
	for i, l := range want.losses {
		if math.Abs(got.losses[i]-l) > 1e-3*max(1, math.Abs(l)) {
			t.Errorf("the loss of step %d is %g on the gpu, %g on the processor", i, got.losses[i], l)
		}
	}
	return want
}

// device opens one, as open does for the other tests.
func device(t *testing.T) *gpu.Device {
	t.Helper()
	d, err := gpu.Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestALeakIsTheSameOnEveryBackend trains each leak of the corpus on the processor and
// on the GPU: block by block and byte by byte, the same lines hold the same.
func TestALeakIsTheSameOnEveryBackend(t *testing.T) {
	d := device(t)
	leaks, ran, grew := 0, 0, 0
	for _, w := range workload.All() {
		if w.Label != workload.Leak {
			continue
		}
		leaks++
		steps := int64(60)
		if w.ID == "L30" { // large images
			steps = 6
		}
		t.Run(w.ID, func(t *testing.T) {
			ran++
			if slices.ContainsFunc(backends(t, w, steps, d).grown, func(g growth) bool { return g.bytes[steps] > g.bytes[0] }) {
				grew++
			}
		})
	}
	if t.Logf("%d of %d leaks grew", grew, ran); ran == leaks && 10*grew < 9*leaks { // with -run, fewer run
		t.Error("there is little to compare")
	}
}

// TestALookAlikeIsTheSameOnEveryBackend trains the rest of the corpus, which no leak
// grows in, for fewer steps.
func TestALookAlikeIsTheSameOnEveryBackend(t *testing.T) {
	d := device(t)
	for _, w := range workload.All() {
		if w.Label != workload.Leak {
			t.Run(w.ID, func(t *testing.T) { backends(t, w, 12, d) })
		}
	}
}
