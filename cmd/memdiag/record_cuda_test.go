package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// standIn runs a script as if its tensors lay on a GPU: PyTorch is the real one, and its allocator's record a stand-in's.
const standIn = "../../testdata/cuda/standin.py"

func TestTheGuiltyLineAndHolderOnAGPUAreFirst(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"leak_metrics.py", "leak_default.py", "leak_outputs.py", "leak_shapes.py", "leak_grads.py"} { // more in bench/gpu.py
		t.Run(name, func(t *testing.T) {
			path := "../../testdata/scripts/" + name
			if name == "leak_grads.py" {
				path = "../../bench/gpu/features/" + name
			}
			oneOfMany(t, path)
			t.Parallel()
			r, findings := recordScript(t, torchPython(t), standIn, path)
			if r.code != exitFine {
				t.Fatalf("exit code %d", r.code)
			}
			wantGuilty(t, findings, path)
			if files, err := filepath.Glob(filepath.Join(r.dir, "snapshot_*.pickle")); err != nil || len(files) < 5 {
				t.Errorf("%d snapshots of PyTorch's own: %v", len(files), err)
			}
		})
	}
}

func TestAScriptThatDoesNotLeakOnAGPURaisesNoAlarm(t *testing.T) {
	for _, name := range []string{"clean_filling.py", "clean_replay.py"} {
		t.Run(name, func(t *testing.T) {
			heavytest.Skip(t, "one of many scripts that train with PyTorch")
			t.Parallel()
			r, findings := recordScript(t, torchPython(t), standIn, "../../testdata/scripts/"+name)
			for _, f := range findings {
				if f.Verdict == "leak" {
					t.Errorf("a leak at %v", f.Frames)
				}
			}
			if r.code != exitFine || r.stdout == "" {
				t.Errorf("exit code %d, printed %q", r.code, r.stdout)
			}
		})
	}
}

// TestAnOperatorThatACThreadCallsIsNoError, as autograd's thread calls those of a GPU's backward: no frame of Python's is below it.
func TestAnOperatorThatACThreadCallsIsNoError(t *testing.T) {
	heavytest.Skip(t, "one of several trainings on the stand-in")
	t.Parallel()
	r, _ := recordScript(t, torchPython(t), standIn, "testdata/bottom.py")
	if r.code != exitFine || r.stdout != "recorded\n" {
		t.Errorf("exit code %d, printed %q", r.code, r.stdout)
	}
}

// TestACopyOnTheCPUIsOfTheProgramsLine, and not of the stand-in's.
func TestACopyOnTheCPUIsOfTheProgramsLine(t *testing.T) {
	heavytest.Skip(t, "it trains with PyTorch")
	const path = "testdata/copies.py"
	r, findings := recordScript(t, torchPython(t), standIn, path)
	if r.code != exitFine {
		t.Fatalf("exit code %d", r.code)
	}
	wantGuilty(t, findings, path)
	runs := 0 // frames of the stand-in: that which runs the program
	for _, f := range findings[0].Frames {
		if filepath.Base(f.File) == filepath.Base(standIn) {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("frames %v", findings[0].Frames)
	}
}

// TestAPinnedTensorThatLeaksIsOneLeak, with the record of pinned memory that PyTorch 2.14 has and with the counts of earlier versions.
func TestAPinnedTensorThatLeaksIsOneLeak(t *testing.T) {
	for _, has := range []string{"record", "counts"} {
		t.Run(has, func(t *testing.T) {
			heavytest.Skip(t, "it trains with PyTorch")
			t.Setenv("STANDIN_PINNED", has)
			const path = "../../bench/gpu/pinned.py"
			r, findings := recordScript(t, torchPython(t), standIn, path)
			if r.code != exitFine || len(findings) == 0 || findings[0].Verdict != "leak" {
				t.Fatalf("exit code %d, %+v", r.code, findings)
			}
			for _, f := range findings[1:] {
				if f.Verdict == "leak" {
					t.Errorf("another leak at %v", f.Frames)
				}
			}
			if has == "record" {
				wantGuilty(t, findings, path)
			}
			run, err := files.OpenRun(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			devices := run.Snapshots[len(run.Snapshots)-1].Devices
			at := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Kind == snapshot.CPU && d.Index == 1 })
			if want := snapshot.Bytes(60 << 14); at < 0 || devices[at].Meters.Allocated < want || devices[at].Meters.Reserved < want {
				t.Errorf("%+v: no %s of pinned memory", devices, want)
			}
		})
	}
}
