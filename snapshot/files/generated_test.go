package files

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	out, err := exec.Command(python, generator, "--out", dir, "--steps", "20", "--every", "5", "--leak", "features").CombinedOutput()
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
