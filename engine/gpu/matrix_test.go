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

// run trains a workload for some steps. It returns what the guilty lines hold at each
// barrier, and the losses.
func run(t *testing.T, w workload.Workload, steps int64, driver mem.Driver, kernels func() engine.Kernels) (grown []growth, losses []float64) {
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
	grown = make([]growth, len(truth))
	loop := train.Loop{Devices: devices}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	loop.OnBarrier(func(snapshot.Mark) error {
		for i, g := range truth {
			blocks, bytes := held(t, g.Marker, devices)
			grown[i].blocks = append(grown[i].blocks, blocks)
			grown[i].bytes = append(grown[i].bytes, bytes)
		}
		return nil
	})
	err = loop.Run(t.Context(), steps, func() (train.Metrics, error) {
		m, err := instance.Step()
		losses = append(losses, m.Loss)
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
	return grown, losses
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

// TestALeakIsTheSameOnEveryBackend trains each leak of the corpus on the processor and
// on the GPU: block by block and byte by byte, the same lines hold the same.
func TestALeakIsTheSameOnEveryBackend(t *testing.T) {
	d, err := gpu.Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
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
			want, losses := run(t, w, steps, mem.Host(), func() engine.Kernels { return cpu.New(1) })
			got, gotLosses := run(t, w, steps, d, func() engine.Kernels { return gpu.New(d) })
			for i, g := range want {
				if !slices.Equal(got[i].blocks, g.blocks) || !slices.Equal(got[i].bytes, g.bytes) {
					t.Errorf("growth %d: the gpu holds %v, the processor %v", i, got[i], g)
				}
			}
			if slices.ContainsFunc(want, func(g growth) bool { return g.bytes[steps] > g.bytes[0] }) {
				grew++
			}
			for i, l := range losses {
				if math.Abs(gotLosses[i]-l) > 1e-3*max(1, math.Abs(l)) {
					t.Errorf("the loss of step %d is %g on the gpu, %g on the processor", i, gotLosses[i], l)
				}
			}
		})
	}
	if t.Logf("%d of %d leaks grew", grew, ran); ran == leaks && 10*grew < 9*leaks { // with -run, fewer run
		t.Error("there is little to compare")
	}
}
