package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAVerdictOfRealDumpsComesWhenItIsSaidTo has Python dump what tracemalloc traces, and compares
// the first of the dumps, then one more each time. What the dumps themselves leave is no leak.
func TestAVerdictOfRealDumpsComesWhenItIsSaidTo(t *testing.T) {
	interpreter := pythonOf(t, "torch", "import tracemalloc")
	const dumps = 8
	dir := t.TempDir()
	program := filepath.Join(dir, "train.py")
	if err := os.WriteFile(program, []byte(fmt.Sprintf(`
import tracemalloc
tracemalloc.start(25)
kept = []
def step():
    kept.append(bytearray(100_000))
for n in range(1, %d):
    step()
    if n %% 10 == 0:
        tracemalloc.take_snapshot().dump("dump_%%d.pickle" %% n)
`, 10*dumps+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	python := exec.Command(interpreter, program)
	python.Dir = dir
	if out, err := python.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := []string{"diff", "--format", "json"}
	said, last := 0, 0
	for n := 1; n <= dumps; n++ {
		args = append(args, filepath.Join(dir, fmt.Sprintf("dump_%d.pickle", 10*n)))
		if n < 2 {
			continue
		}
		var result struct {
			Findings []struct {
				Verdict  string
				Headline codeLine
				More     int `json:"more_snapshots"`
				Steps    int `json:"more_steps"`
			}
		}
		decodeOutput(t, &result, args...)
		for _, f := range result.Findings {
			what := fmt.Sprintf("after %d dumps: line %d is %s, decided in %d", n, f.Headline.Line, f.Verdict, f.More)
			t.Log(what)
			switch {
			case f.Headline.Line != 6 && f.Verdict == "leak":
				t.Error(what)
			case f.Headline.Line != 6:
			case f.Verdict == "leak" && last == n-1 && said != 1:
				t.Errorf("%s, when %d more were said to", what, said)
			case f.Verdict == "inconclusive":
				if said, last = f.More, n; f.Steps != 10*f.More {
					t.Errorf("%s, or %d steps", what, f.Steps)
				}
			}
		}
	}
	if last != 4 {
		t.Errorf("inconclusive until dump %d, which was 4 when this was written", last)
	}
}
