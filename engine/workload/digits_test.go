package workload_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// readDigits trains on digits for so many steps and returns what the training says
// of itself. look is called at each barrier.
func readDigits(t *testing.T, seed, steps int64, look func(snapshot.Mark, *mem.Device)) string {
	t.Helper()
	w, err := workload.Find("digits")
	if err != nil {
		t.Fatal(err)
	}
	d := mem.NewDevice(mem.Host(), mem.Options{})
	instance, err := w.New(workload.Config{Seed: seed, Device: d, Kernels: cpu.New(0)})
	if err != nil {
		t.Fatal(err)
	}
	loop := train.Loop{Devices: []*mem.Device{d}, Phases: instance.(workload.Phased).Phases()}
	loop.OnBarrier(func(m snapshot.Mark) error {
		look(m, d)
		return nil
	})
	if err := loop.Run(t.Context(), steps, instance.Step); err != nil {
		t.Fatal(err)
	}
	summary, err := instance.(workload.Summarizer).Summary()
	if err := errors.Join(err, instance.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return summary
}

// TestDigitsAreReadAfterAHundredSteps: of images held out, whatever the seed, 95 of
// 100. On two cores it takes half a second; under the race detector, many.
func TestDigitsAreReadAfterAHundredSteps(t *testing.T) {
	for seed := range int64(2) {
		began := time.Now()
		summary := readDigits(t, seed, 100, func(snapshot.Mark, *mem.Device) {})
		var accuracy float64
		if _, err := fmt.Sscanf(summary, "test accuracy %g", &accuracy); err != nil {
			t.Fatalf("%q: %v", summary, err)
		}
		t.Logf("seed %d: %s in %v", seed, summary, time.Since(began).Round(time.Millisecond))
		if accuracy < 0.95 || accuracy > 1 {
			t.Errorf("seed %d: %s", seed, summary)
		}
	}
	if untrained := readDigits(t, 0, 0, func(snapshot.Mark, *mem.Device) {}); !strings.HasPrefix(untrained, "test accuracy 0.0") && !strings.HasPrefix(untrained, "test accuracy 0.1") && !strings.HasPrefix(untrained, "test accuracy 0.2") {
		t.Errorf("without training: %s", untrained)
	}
}

// TestTheLedgerOfDigits counts every live block at every barrier: six parameters,
// their momentum, two arrays of each batch that waits, and after the batches of an
// evaluation the count of right answers.
func TestTheLedgerOfDigits(t *testing.T) {
	evaluations := 0
	readDigits(t, 1, 45, func(m snapshot.Mark, d *mem.Device) {
		want := map[snapshot.Owners]int{snapshot.OwnedByUser: 6}
		if m.Step > 0 {
			want[snapshot.OwnedByOptim] = 6
			want[snapshot.OwnedByCache] = 2 * int(min(m.Step, 2))
		}
		got := enginetest.Owners(d)
		if m.Phase == train.Evaluating {
			evaluations++
			if m.Step%22 != 0 || m.BatchElements == 0 {
				t.Errorf("an evaluation at %+v", m)
			}
			if got[snapshot.OwnedByUser] <= 6 {
				t.Errorf("step %d: an evaluation holds %v", m.Step, got)
			}
			got[snapshot.OwnedByUser] = 6
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s, step %d: %v, want %v", m.Phase, m.Step, got, want)
		}
	})
	if evaluations != 2*6 { // two epochs end, each with six batches held out
		t.Errorf("%d marks of evaluations", evaluations)
	}
}
