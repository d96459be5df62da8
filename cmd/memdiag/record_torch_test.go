package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// finding is what is looked at of one in diff's JSON.
type finding struct {
	Verdict string
	Frames  []struct {
		File string
		Line int
	}
	Holder *struct {
		Kind, Path string
		Items      int
	}
	Growth struct{ Blocks int64 }
}

// recordScript records a Python script, or one that another runs, and returns what diff finds in it.
func recordScript(t *testing.T, python string, paths ...string) (recordedProgram, []finding) {
	t.Helper()
	r := recordProgram(t, []string{"record"}, append([]string{python}, paths...)...)
	var text, errs bytes.Buffer
	if c := run([]string{"diff", "--format", "json", r.dir}, nil, &text, &errs); c != exitFine {
		t.Fatalf("diff ended with %d: %s", c, &errs)
	}
	var result struct{ Findings []finding }
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	return r, result.Findings
}

// marked returns the number of the line of a script that ends in a mark, and the
// word behind it.
func marked(t *testing.T, path, mark string) (line int, word string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range strings.Split(string(text), "\n") {
		if _, after, ok := strings.Cut(l, "# "+mark); ok {
			return i + 1, strings.Trim(after, ": ")
		}
	}
	t.Fatalf("%s has no %q", path, mark)
	return 0, ""
}

func scripts(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/scripts/" + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return paths
}

// oneOfMany skips a script unless it is one that stands for its kind in every run of the tests:
// each trains with PyTorch for some ten seconds.
func oneOfMany(t *testing.T, path string) {
	t.Helper()
	switch filepath.Base(path) {
	case "leak_metrics.py", "leak_list.py", "clean_exit7.py":
	default:
		heavytest.Skip(t, "one of many scripts that train with PyTorch")
	}
}

func TestTheGuiltyLineOfAScriptIsFirst(t *testing.T) {
	for _, path := range scripts(t, "leak_*.py") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			oneOfMany(t, path)
			if filepath.Base(path) != "leak_numpy.py" { // beside other trainings windows of Python's heap cost it too much
				t.Parallel()
			}
			r, findings := recordScript(t, torchPython(t), path)
			// On a busy machine a traced step may take so long that windows of Python's heap do not fit into their budget.
			for again := 0; again < 3 && len(findings) == 0 && strings.Contains(r.said, "would have cost too much in so short a run"); again++ {
				t.Logf("once more, since it said %s", r.said)
				r, findings = recordScript(t, torchPython(t), path)
			}
			if r.code != exitFine {
				t.Fatalf("exit code %d", r.code)
			}
			wantGuilty(t, findings, path)
			if filepath.Base(path) == "leak_metrics.py" {
				if losses, err := os.ReadFile(filepath.Join(r.dir, "losses.csv")); err != nil || bytes.Count(losses, []byte(",backward,")) != 200 {
					t.Errorf("not the losses of 200 steps: %v\n%.200s", err, losses)
				}
			}
		})
	}
}

// wantGuilty checks that the first finding is a leak at the line that a script marks, kept by the holder that it marks.
func wantGuilty(t *testing.T, findings []finding, path string) {
	t.Helper()
	line, _ := marked(t, path, "leak")
	_, holder := marked(t, path, "holder")
	if len(findings) == 0 {
		t.Fatal("no finding")
	}
	first := findings[0]
	at := false
	for _, f := range first.Frames {
		at = at || filepath.Base(f.File) == filepath.Base(path) && f.Line == line
	}
	if first.Verdict != "leak" || !at {
		t.Errorf("first is %s at %v, want line %d", first.Verdict, first.Frames, line)
	}
	name := regexp.MustCompile(`\b` + holder + `\b`)
	if first.Holder == nil || !name.MatchString(first.Holder.Path) || first.Holder.Items < 10 {
		t.Errorf("it is held by %+v, want %s", first.Holder, holder)
	}
}

// TestATrainingWithoutAnOptimizerIsWatchedToItsEnd, by the clock: watching once ended with its first budget, after
// some five hundred of these steps.
func TestATrainingWithoutAnOptimizerIsWatchedToItsEnd(t *testing.T) {
	heavytest.Skip(t, "a training of 10 s")
	t.Parallel()
	path := scripts(t, "byhand_sgd.py")[0]
	line, _ := marked(t, path, "leak")
	r, findings := recordScript(t, torchPython(t), path)
	if r.code != exitFine || len(findings) == 0 {
		t.Fatalf("exit code %d, %d findings", r.code, len(findings))
	}
	f := findings[0]
	if f.Frames[0].Line != line || f.Verdict == "bounded" || f.Growth.Blocks < 5000 {
		t.Errorf("%s of %d blocks at %v, want more than 5,000 at line %d", f.Verdict, f.Growth.Blocks, f.Frames, line)
	}
}

func TestAScriptThatDoesNotLeakRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	for _, path := range scripts(t, "clean_*.py") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			oneOfMany(t, path)
			t.Parallel()
			r, findings := recordScript(t, torchPython(t), path)
			for _, f := range findings {
				if f.Verdict == "leak" {
					t.Errorf("a leak at %v", f.Frames)
				}
			}
			want := exitFine
			if filepath.Base(path) == "clean_exit7.py" {
				want = 7
			} else if r.stdout == "" {
				t.Error("it printed nothing")
			}
			if r.code != want {
				t.Errorf("exit code %d, want %d", r.code, want)
			}
		})
	}
}

// The record of tensors ended at an operator that PyTorch 2.1 showed otherwise than later versions, and the gate passed.
func TestAfterAnErrorAtAnOperatorTheGateIsUndecided(t *testing.T) {
	heavytest.Skip(t, "a training with PyTorch")
	t.Parallel()
	script := filepath.Join(t.TempDir(), "train.py")
	program := `
import memdiag, torch
memdiag._running.torch.largest = None
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(30):
    model(torch.ones(4, 8)).mean().backward()
    optimizer.step()
`
	if err := os.WriteFile(script, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	r := recordProgram(t, []string{"record"}, torchPython(t), script)
	var said bytes.Buffer
	if code := run([]string{"gate", r.dir}, nil, &said, io.Discard); code != exitInconclusive || !strings.Contains(said.String(), "tensors on the CPU are not recorded") {
		t.Errorf("exit code %d: %s", code, &said)
	}
}

// PyTorch computes a forward derivative in Python, within an operator that later restores that operators look for a mode. The next one found
// none, and the program ended. After an operator the mode is left.
func TestTheModeIsNotLeftWithinAnOperator(t *testing.T) {
	heavytest.Skip(t, "a program with PyTorch")
	t.Parallel()
	script := filepath.Join(t.TempDir(), "forward.py")
	program := `
import memdiag, torch
source = memdiag._running.torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU())
for i in range(100):
    source.on(1)
    source.mode.paused, source.mode.limit, source.mode.watcher = False, source.mode.ops + i, source  # its budget will be used up
    torch.func.jvp(model, (torch.ones(2, 8),), (torch.ones(2, 8),))
    torch.ones(1) + 1
source.on(1)
source.mode.paused, source.mode.limit, source.mode.watcher = True, 0, source
for _ in range(3):
    torch.ones(1)
print(source.modes())
`
	if err := os.WriteFile(script, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := recordProgram(t, []string{"record"}, torchPython(t), script); r.code != exitFine || r.stdout != "0\n" || strings.Contains(r.said, "Error") {
		t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.said)
	}
}

// What programs do that a dispatch mode could break; each prints what it computed.
func TestProgramsComputeTheSameUnderTheAgent(t *testing.T) {
	for _, path := range scripts(t, "same_*.py") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			oneOfMany(t, path)
			t.Parallel()
			python := torchPython(t)
			want, err := recordtest.Command(t, python, path).Output()
			if err != nil {
				t.Fatal(err)
			}
			r := recordProgram(t, []string{"record"}, python, path)
			if r.code != exitFine {
				t.Fatalf("exit code %d", r.code)
			}
			if r.stdout != string(want) {
				t.Errorf("it printed\n%s\nalone\n%s", r.stdout, want)
			}
			if strings.Contains(r.said, "Error") { // a note of the agent's
				t.Error("the agent had an error")
			}
			if names, err := filepath.Glob(filepath.Join(r.dir, "snapshot_*")); err != nil || len(names) == 0 {
				t.Error("no snapshots")
			}
		})
	}
}

// What backward lets go of in one thread, a walk in another must not read.
func TestThreadsThatTrainSideBySideGoOn(t *testing.T) {
	heavytest.Skip(t, "a training with a snapshot at every step")
	t.Parallel()
	if r := recordProgram(t, []string{"record", "--every", "1"}, torchPython(t), "../../testdata/scripts/same_backwards.py"); r.code != exitFine {
		t.Errorf("exit code %d", r.code)
	}
}

func TestRanksOfOneCommandHaveFilesOfTheirOwn(t *testing.T) {
	heavytest.Skip(t, "two ranks of torchrun")
	t.Parallel()
	r := recordProgram(t, []string{"record"}, torchPython(t), "-m", "torch.distributed.run", "--nproc-per-node", "2", "../../testdata/scripts/ranks.py")
	if r.code != exitFine {
		t.Fatalf("exit code %d", r.code)
	}
	for rank := range 2 {
		names, err := filepath.Glob(filepath.Join(r.dir, fmt.Sprintf("snapshot_*_rank%d.json", rank)))
		if err != nil || len(names) < 3 {
			t.Errorf("rank %d has %q", rank, names)
		}
	}
	if loose, _ := filepath.Glob(filepath.Join(r.dir, "snapshot_[0-9t]*[0-9].json")); len(loose) > 0 {
		for _, l := range loose {
			if !strings.Contains(l, "_rank") {
				t.Errorf("%s is of no rank", l)
			}
		}
	}
}

// Workers of a pool are watched once they have grown, by blocks of the size that they go on to keep.
func TestALeakInAPoolsWorkersFailsTheGate(t *testing.T) {
	heavytest.Skip(t, "three processes run for 12 s")
	t.Parallel()
	const path = "../../testdata/scripts/pool.py"
	line, _ := marked(t, path, "leak")
	r := recordProgram(t, []string{"record"}, torchPython(t), path)
	var said, errs bytes.Buffer
	code := run([]string{"gate", r.dir}, nil, &said, &errs)
	if want := fmt.Sprintf("pool.py:%d", line); code != exitLeak || !strings.Contains(said.String(), want) || !strings.Contains(said.String(), "list `__main__.kept`") {
		t.Errorf("exit code %d, want %d at %s:\n%s", code, exitLeak, want, &said)
	}
}
