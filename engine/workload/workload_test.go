package workload_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// trial is one workload run for some steps.
type trial struct {
	losses []float64
	marks  []snapshot.Mark
	// at holds a snapshot of every barrier of the training.
	at      []*snapshot.Snapshot
	holders []snapshot.Holder // of the last barrier
	// parameters is how many tensors the model trains.
	parameters int
}

func runFor(t *testing.T, w workload.Workload, steps int64, fixed bool) trial {
	t.Helper()
	d := mem.NewDevice(mem.Host(), mem.Options{})
	instance, err := w.New(workload.Config{Seed: 1, Fixed: fixed, Device: d, Kernels: cpu.New(0)})
	if err != nil {
		t.Fatal(err)
	}
	out := trial{parameters: len(instance.Model().(nn.Module).Parameters())}
	loop := train.Loop{Devices: []*mem.Device{d}}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	loop.OnBarrier(func(m snapshot.Mark) error {
		if m.Phase != train.Training {
			return nil
		}
		out.marks = append(out.marks, m)
		out.at = append(out.at, mem.Take(m, d))
		return nil
	})
	err = loop.Run(t.Context(), steps, func() (train.Metrics, error) {
		m, err := instance.Step()
		out.losses = append(out.losses, m.Loss)
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	out.holders = train.Holders(instance.Model(), out.at[steps], d)
	if err := instance.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("after closing the instance: %v", err)
	}
	return out
}

// guiltySite is the site whose headline is the declared line; nil where nothing of
// it is live.
func guiltySite(s *snapshot.Snapshot, w workload.Workload) *snapshot.Site {
	file, line := w.Guilty()
	for _, site := range s.Sites() {
		for _, f := range s.Stacks.Frames(site.Stack) {
			if strings.HasPrefix(f.File, "engine/workload/") {
				if f.File == file && f.Line == line {
					return &site
				}
				break
			}
		}
	}
	return nil
}

func TestEveryWorkloadShowsWhatItDeclares(t *testing.T) {
	const steps = 12
	for _, w := range workload.All() {
		t.Run(w.ID, func(t *testing.T) {
			if w.Label == workload.Clean {
				staysFlat(t, w)
				return
			}
			if w.Label != workload.Leak || w.Event != workload.PerStep {
				t.Fatalf("no check for %s per %s is written", w.Label, w.Event)
			}
			run := runFor(t, w, steps, false)
			for step, s := range run.at {
				if step == 0 {
					continue
				}
				site := guiltySite(s, w)
				if site == nil {
					t.Fatalf("nothing of the guilty line is live after step %d", step)
				}
				blocks, bytes := w.Blocks*float64(step), int64(w.Bytes)*int64(step)
				if float64(site.Count) != blocks || int64(site.Requested) != bytes || site.Owners != w.Owner {
					t.Fatalf("after step %d: %d blocks, %d bytes, owners %v; want %g, %d, %v",
						step, site.Count, site.Requested, site.Owners.Names(), blocks, bytes, w.Owner.Names())
				}
			}
			fixed := runFor(t, w, steps, true)
			if site := guiltySite(fixed.at[steps], w); site != nil {
				t.Errorf("the fixed variant holds %d blocks of the guilty line", site.Count)
			}
			first, last := fixed.at[1].Devices[0].Meters.Allocated, fixed.at[steps].Devices[0].Meters.Allocated
			if first != last {
				t.Errorf("the fixed variant holds %v after step 1 and %v after step %d", first, last, steps)
			}
			if !slices.Equal(run.losses, fixed.losses) {
				t.Errorf("losses differ:\n%v\n%v", run.losses, fixed.losses)
			}
		})
	}
}

// staysFlat trains for 50 steps: behind the fifth, by which queues are full and an
// optimizer's state is made, the live blocks are the same at each.
func staysFlat(t *testing.T, w workload.Workload) {
	t.Helper()
	run := runFor(t, w, 50, false)
	settled := run.at[5].Devices[0].Meters.Allocated
	for step, s := range run.at[5:] {
		if now := s.Devices[0].Meters.Allocated; now != settled {
			t.Fatalf("%v is live after step %d, %v after step 5", now, 5+step, settled)
		}
	}
}

// TestTheLedger counts every live block at every barrier: parameters, optimizer
// state, and what the workload says it leaks.
func TestTheLedger(t *testing.T) {
	for _, w := range workload.All() {
		if w.Label != workload.Leak {
			continue
		}
		t.Run(w.ID, func(t *testing.T) {
			run := runFor(t, w, 5, false)
			blocks := func(s *snapshot.Snapshot) map[snapshot.Owners]int {
				count := map[snapshot.Owners]int{}
				for i, state := range s.Blocks.State {
					if state == snapshot.Live {
						count[s.Blocks.Owners[i]]++
					}
				}
				return count
			}
			made := map[snapshot.Owners]int{snapshot.OwnedByUser: run.parameters}
			if got := blocks(run.at[0]); fmt.Sprint(got) != fmt.Sprint(made) {
				t.Errorf("before the first step: %v, want %v", got, made)
			}
			for step, s := range run.at[1:] {
				got := blocks(s)
				want := map[snapshot.Owners]int{
					snapshot.OwnedByUser:  run.parameters + int(w.Blocks)*(step+1),
					snapshot.OwnedByOptim: run.parameters,
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("after step %d: %v, want %v", step+1, got, want)
				}
			}
		})
	}
}

func TestHoldersNameTheListOfTheModule(t *testing.T) {
	w, err := workload.Find("L30")
	if err != nil {
		t.Fatal(err)
	}
	run := runFor(t, w, 4, false)
	site := guiltySite(run.at[4], w)
	want := snapshot.Holder{Stack: site.Stack, Path: "Pyramid.features", Kind: "list", Items: 4}
	if !slices.Contains(run.holders, want) {
		t.Errorf("got %+v, want %+v among them", run.holders, want)
	}
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

// TestAStepThatDoesNotFitLeavesNothing gives the device too little memory for a
// step: it fails halfway, and only what is kept on purpose is left.
func TestAStepThatDoesNotFitLeavesNothing(t *testing.T) {
	for _, w := range workload.All() {
		t.Run(w.ID, func(t *testing.T) {
			failed := 0
			for limit := 2 * snapshot.MiB; limit <= 28*snapshot.MiB; limit += 2 * snapshot.MiB {
				d := mem.NewDevice(mem.Host(), mem.Options{Limit: limit})
				instance, err := w.New(workload.Config{Seed: 1, Fixed: true, Device: d, Kernels: cpu.New(0)})
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
		file, line := w.Guilty()
		text, err := os.ReadFile(filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		n := strings.Count(string(text), "//leak:here")
		if w.Label == workload.Clean {
			if n != 0 || line != 0 {
				t.Errorf("%s is clean, and %s has %d markers; Guilty says line %d", w.ID, file, n, line)
			}
			continue
		}
		if n != 1 || line == 0 || !strings.HasSuffix(lines[line-1], "//leak:here") {
			t.Errorf("%s: %s has %d markers; Guilty says line %d", w.ID, file, n, line)
		}
	}
	if _, err := workload.Find("L99"); err == nil {
		t.Error("L99 is found")
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
