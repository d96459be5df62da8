package workload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

func TestHoldersNameTheListOfTheModule(t *testing.T) {
	w, err := workload.Find("L30")
	if err != nil {
		t.Fatal(err)
	}
	run := runFor(t, w, 1, 4, false)
	lines := growthLines(t, run.truth)
	for _, h := range run.holders {
		if lineOf(run.last, h.Stack, lines, workload.OnDevice) == 0 && h.Path == "Pyramid.features" && h.Kind == "list" && h.Items == 4 {
			return
		}
	}
	t.Errorf("the list Pyramid.features is not among %+v", run.holders)
}

func TestADetectorLearnsInAHundredSteps(t *testing.T) {
	w, err := workload.Find("feature-pyramid")
	if err != nil {
		t.Fatal(err)
	}
	d := mem.NewDevice(mem.Host(), mem.Options{})
	instance, err := w.New(workload.Config{Seed: 1, Device: d, Kernels: cpu.New(0)})
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for range 100 {
		m, err := instance.Step()
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, m.Loss)
	}
	if err := errors.Join(instance.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	mean := func(l []float64) (sum float64) {
		for _, x := range l {
			sum += x / float64(len(l))
		}
		return sum
	}
	first, last := mean(losses[:10]), mean(losses[90:])
	t.Logf("loss %.3f at first, %.3f at last", first, last)
	if last >= 0.6*first {
		t.Errorf("the loss fell from %.3f to %.3f only", first, last)
	}
}

// primitive hides fused kernels. With them, a step of digits needs no more than the
// smallest segment that a device takes.
type primitive struct{ engine.Kernels }

// TestAStepThatDoesNotFitLeavesNothing gives the device too little memory for a
// step: it fails halfway, and only what is kept on purpose is left.
func TestAStepThatDoesNotFitLeavesNothing(t *testing.T) {
	for _, name := range []string{"L30", "digits"} {
		t.Run(name, func(t *testing.T) {
			w, err := workload.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for limit := 2 * snapshot.MiB; limit <= 28*snapshot.MiB; limit += 2 * snapshot.MiB {
				d := mem.NewDevice(mem.Host(), mem.Options{Limit: limit})
				instance, err := w.New(workload.Config{Seed: 1, Fixed: true, Device: d, Kernels: primitive{cpu.New(0)}})
				if err != nil { // not even the model fits
					if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full || temporaries(d) != 0 {
						t.Errorf("limit %v: %v; %d blocks are left", limit, err, temporaries(d))
					}
					if err := d.Close(); err != nil {
						t.Error(err)
					}
					continue
				}
				before := temporaries(d)
				if _, err := instance.Step(); err != nil {
					failed++
					var full *mem.OutOfMemoryError
					var e *engine.Error
					if !errors.As(err, &full) || !errors.As(err, &e) {
						t.Errorf("limit %v: %v", limit, err)
					}
					// Gradients of leaves and momentum may remain: they are the model's.
					if after := temporaries(d); after != before {
						t.Errorf("limit %v: %d blocks of the user's and the tape's, %d before the step", limit, after, before)
					}
				}
				if err := errors.Join(instance.Close(), d.Close()); err != nil {
					t.Errorf("limit %v: %v", limit, err)
				}
			}
			if failed == 0 {
				t.Error("no limit was too small; the test shows nothing")
			}
		})
	}
}

// temporaries counts live blocks that a handle of the program or the tape holds.
func temporaries(d *mem.Device) (n int) {
	s := mem.Take(snapshot.Mark{}, d)
	for i, state := range s.Blocks.State {
		if state == snapshot.Live && s.Blocks.Owners[i]&(snapshot.OwnedByUser|snapshot.OwnedByTape) != 0 {
			n++
		}
	}
	return n
}

func TestTheCorpusIsWellFormed(t *testing.T) {
	heavytest.Sequential(t, "it reads what is declared")
	seen := map[string]bool{}
	for _, w := range workload.All() {
		for _, name := range []string{w.ID, w.Alias} {
			if name == "" || seen[strings.ToLower(name)] {
				t.Errorf("the name %q is empty or given twice", name)
			}
			seen[strings.ToLower(name)] = true
			if got, err := workload.Find(strings.ToUpper(name)); err != nil || got.ID != w.ID {
				t.Errorf("Find(%q) = %s, %v", name, got.ID, err)
			}
		}
		if w.Title == "" || w.Label == workload.Leak && w.Cause == "" {
			t.Errorf("%s has no title or no cause", w.ID)
		}
		for seed := range int64(20) {
			wellFormed(t, w, w.Truth(seed))
		}
	}
	if _, err := workload.Find("L99"); err == nil {
		t.Error("L99 is found")
	}
}

// wellFormed holds a truth against the label, and against the source: each growth
// has a line, which bears the workload's id and the label's word.
func wellFormed(t *testing.T, w workload.Workload, truth workload.Truth) {
	t.Helper()
	if truth.Steps < 50 || truth.Steps > 800 {
		t.Errorf("%s takes %d steps", w.ID, truth.Steps)
	}
	if (len(truth.Growth) == 0) != (w.ID == "digits") {
		t.Errorf("%s declares %d growths", w.ID, len(truth.Growth))
	}
	word := map[workload.Label]string{workload.Leak: "leak:", workload.Bounded: "held:", workload.Clean: "held:"}[w.Label]
	for _, g := range truth.Growth {
		file, line, err := workload.Line(g.Marker)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		marked := strings.Split(string(text), "\n")[line-1]
		if id, _, _ := strings.Cut(g.Marker, "/"); id != w.ID || !strings.Contains(marked, word+g.Marker) {
			t.Errorf("%s: line %d of %s is %q", g.Marker, line, file, marked)
		}
		if g.Unbounded() != (w.Label == workload.Leak) {
			t.Errorf("%s is %s, and its bound %+v", g.Marker, w.Label, g.Bound)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	w, err := workload.Find("L30")
	if err != nil {
		b.Fatal(err)
	}
	d := mem.NewDevice(mem.Host(), mem.Options{})
	instance, err := w.New(workload.Config{Seed: 1, Fixed: true, Device: d, Kernels: cpu.New(0)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := instance.Step(); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(instance.Close(), d.Close()); err != nil {
		b.Error(err)
	}
}
