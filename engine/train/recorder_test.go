package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// An interval of 0 once divided by it.
func TestBlocksAreRecordedWhenTheIntervalSays(t *testing.T) {
	for _, c := range []struct {
		name         string
		every, start int64
		want         []int64
	}{
		{"every third step and the final one", 3, 0, []int64{0, 3, 6, 7}},
		{"an interval of 0 is the first and the final", 0, 0, []int64{0, 7}},
		{"an interval below 0 is as one of 0", -3, 0, []int64{0, 7}},
		{"a run that goes on begins at its own first barrier", 0, 4, []int64{4, 7}},
		{"a run of no step has one", 0, 7, []int64{7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, d := enginetest.NewEager(t)
			out, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := train.NewRecorder(out, c.every, 7, nil, d)
			if err != nil {
				t.Fatal(err)
			}
			loop := train.Loop{Devices: []*mem.Device{d}, Start: c.start}
			loop.OnBarrier(r.Barrier)
			if err := loop.Run(t.Context(), 7, func() (train.Metrics, error) { return train.Metrics{}, nil }); err != nil {
				t.Fatal(err)
			}
			if err := r.Wait(); err != nil {
				t.Fatal(err)
			}
			if err := out.Finish(0, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(out.Dir())
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, e := range entries {
				var step int64
				if _, err := fmt.Sscanf(e.Name(), "snapshot_%d", &step); err == nil {
					got = append(got, step)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("blocks of steps %v, want %v", got, c.want)
			}
		})
	}
}

// TestTheLastSnapshotKnowsWhatIsLost, though no collector ran while it trained.
func TestTheLastSnapshotKnowsWhatIsLost(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	d := mem.NewDevice(mem.Host(), mem.Options{}) // never closed, with what is lost
	o := engine.NewEager(cpu.New(1), d)
	out, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := train.NewRecorder(out, 2, 4, nil, d)
	if err != nil {
		t.Fatal(err)
	}
	var kept []*engine.Tensor
	loop := train.Loop{Devices: []*mem.Device{d}}
	loop.OnBarrier(r.Barrier)
	err = loop.Run(t.Context(), 4, func() (train.Metrics, error) {
		return train.Metrics{}, engine.Run(o, func(*engine.Scope) error {
			kept = append(kept, o.Full(1, 64).Keep())
			o.Full(1, 64).Keep() // nobody can release it
			return nil
		})
	})
	if err := errors.Join(err, r.Wait()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(out.Dir(), "snapshot_4.memdiag"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := native.Decode("snapshot_4.memdiag", bytes.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, o := range s.Blocks.Owners {
		if o&snapshot.Lost != 0 {
			lost++
		}
	}
	if lost != 4 {
		t.Errorf("%d blocks are lost, want 4: %v", lost, s.Blocks.Owners)
	}
	for _, k := range kept {
		k.Release()
	}
}
