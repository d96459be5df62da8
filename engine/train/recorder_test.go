package train_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
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
