package files

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

// TestASeriesOfPyTorchFilesIsARun reads what the generator beside the project
// writes: pickles named by step, and a truth.json that is no snapshot.
func TestASeriesOfPyTorchFilesIsARun(t *testing.T) {
	const generator = "../../../shared/tools/gen_torch_snapshots.py"
	if _, err := os.Stat(generator); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("needs the generator of PyTorch snapshots beside the project:", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the generator needs python3")
	}
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, python, generator, "--out", dir, "--steps", "20", "--every", "5", "--leak", "features").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{0, 5, 10, 15, 20}, steps(run)); d != "" {
		t.Error(d)
	}
	if len(run.Notes) > 0 {
		t.Errorf("notes: %q", run.Notes)
	}
	for i, s := range run.Snapshots[1:] {
		if s.Blocks.BirthStep == nil {
			continue
		}
		for row, born := range s.Blocks.BirthStep {
			if born > s.Mark.Step {
				t.Fatalf("snapshot %d: block %d was born in step %d, after step %d", i+1, row, born, s.Mark.Step)
			}
		}
	}
}

// TestWhatPyTorchWroteCanBeWrittenAsOurs opens every recorded file beside the
// project, writes it in our format, and opens that.
func TestWhatPyTorchWroteCanBeWrittenAsOurs(t *testing.T) {
	const recorded = "../../../shared/data/torch"
	entries, err := os.ReadDir(recorded)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("needs the recorded PyTorch snapshots beside the project:", err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			want, err := Open(filepath.Join(recorded, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := native.Encode(&b, want); err != nil {
				t.Fatal(err)
			}
			got, err := Open(write(t, t.TempDir(), "ours", b.String()))
			if err != nil {
				t.Fatal(err)
			}
			if want.Blocks.Len() == 0 {
				t.Error("no blocks")
			}
			// Ids of stacks may differ, their hashes do not.
			byHash := cmpopts.IgnoreFields(snapshot.Site{}, "Stack")
			if d := cmp.Diff(want.Sites(), got.Sites(), byHash); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(want.Devices, got.Devices); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(want.Notes, got.Notes); d != "" {
				t.Error(d)
			}
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes of PyTorch's, %d of ours", info.Size(), b.Len())
		})
	}
}
