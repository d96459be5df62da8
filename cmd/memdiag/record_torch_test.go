//go:build !race

// Recording is done by a Python process and by a test binary of its own; the race
// detector would see neither, and slow both down.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// torchPython is a Python that has PyTorch 2.1 or later.
func torchPython(t *testing.T) string {
	t.Helper()
	candidates := []string{os.Getenv("MEMDIAG_TORCH_PYTHON"), "python3"}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append([]string{filepath.Join(cache, "memdiag", "torch", "bin", "python")}, candidates...)
	}
	for _, python := range candidates {
		if python != "" && exec.Command(python, "-c", "import torch, numpy; torch.UntypedStorage._weak_ref").Run() == nil {
			return python
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no PyTorch here; .ci/run installs it")
	}
	t.Skip("no PyTorch here; make torch installs it beside the repository")
	return ""
}

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

// recordScript records a Python script and returns its output, its exit code and
// what diff finds.
func recordScript(t *testing.T, python string, args ...string) (stdout string, code int, findings []finding) {
	t.Helper()
	t.Setenv("OMP_NUM_THREADS", "1")
	dir := filepath.Join(t.TempDir(), "run")
	var out, said bytes.Buffer
	code = run(append([]string{"record", "-o", dir, "--", python}, args...), nil, &out, &said)
	var text, errs bytes.Buffer
	if c := run([]string{"diff", "--format", "json", dir}, nil, &text, &errs); c != exitFine {
		t.Fatalf("diff ended with %d: %s; record said %s", c, &errs, &said)
	}
	var result struct{ Findings []finding }
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	return out.String(), code, result.Findings
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
	if testing.Short() {
		t.Skip("each script imports PyTorch")
	}
	paths, err := filepath.Glob("../../testdata/scripts/" + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return paths
}

func TestTheGuiltyLineOfAScriptIsFirst(t *testing.T) {
	paths := scripts(t, "leak_*.py")
	python := torchPython(t) // which takes an import of PyTorch to find
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			line, _ := marked(t, path, "leak")
			_, holder := marked(t, path, "holder")
			_, code, findings := recordScript(t, python, path)
			if code != exitFine || len(findings) == 0 {
				t.Fatalf("exit code %d, %d findings", code, len(findings))
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
		})
	}
}

// TestATrainingWithoutAnOptimizerIsWatchedToItsEnd, by the clock: watching once ended with its first budget, after
// some five hundred of these steps.
func TestATrainingWithoutAnOptimizerIsWatchedToItsEnd(t *testing.T) {
	path := scripts(t, "byhand_sgd.py")[0]
	line, _ := marked(t, path, "leak")
	_, code, findings := recordScript(t, torchPython(t), path)
	if code != exitFine || len(findings) == 0 {
		t.Fatalf("exit code %d, %d findings", code, len(findings))
	}
	f := findings[0]
	if f.Frames[0].Line != line || f.Verdict == "bounded" || f.Growth.Blocks < 5000 {
		t.Errorf("%s of %d blocks at %v, want more than 5,000 at line %d", f.Verdict, f.Growth.Blocks, f.Frames, line)
	}
}

func TestAScriptThatDoesNotLeakRaisesNoAlarm(t *testing.T) {
	paths := scripts(t, "clean_*.py")
	python := torchPython(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			stdout, code, findings := recordScript(t, python, path)
			for _, f := range findings {
				if f.Verdict == "leak" {
					t.Errorf("a leak at %v", f.Frames)
				}
			}
			want := exitFine
			if filepath.Base(path) == "clean_exit7.py" {
				want = 7
			} else if stdout == "" {
				t.Error("it printed nothing")
			}
			if code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
		})
	}
}

// What programs do that a dispatch mode could break; each prints what it computed.
func TestProgramsComputeTheSameUnderTheAgent(t *testing.T) {
	paths := scripts(t, "same_*.py")
	python := torchPython(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			plain := exec.Command(python, path)
			plain.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
			want, err := plain.Output()
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("OMP_NUM_THREADS", "1")
			var out, said bytes.Buffer
			dir := filepath.Join(t.TempDir(), "run")
			if code := run([]string{"record", "-o", dir, "--", python, path}, nil, &out, &said); code != exitFine {
				t.Fatalf("exit code %d: %s", code, &said)
			}
			if out.String() != string(want) {
				t.Errorf("it printed\n%s\nalone\n%s", &out, want)
			}
			if strings.Contains(said.String(), "Error") { // a note of the agent's
				t.Errorf("memdiag said %s", &said)
			}
			if names, err := filepath.Glob(filepath.Join(dir, "snapshot_*")); err != nil || len(names) == 0 {
				t.Errorf("no snapshots: %s", &said)
			}
		})
	}
}

func TestRanksOfOneCommandHaveFilesOfTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("two processes import PyTorch")
	}
	dir := filepath.Join(t.TempDir(), "run")
	var out, said bytes.Buffer
	code := run([]string{"record", "-o", dir, "--", torchPython(t), "-m", "torch.distributed.run", "--nproc-per-node", "2",
		"../../testdata/scripts/ranks.py"}, nil, &out, &said)
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	for rank := range 2 {
		names, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("snapshot_*_rank%d.json", rank)))
		if err != nil || len(names) < 3 {
			t.Errorf("rank %d has %q: %s", rank, names, &said)
		}
	}
	if loose, _ := filepath.Glob(filepath.Join(dir, "snapshot_[0-9t]*[0-9].json")); len(loose) > 0 {
		for _, l := range loose {
			if !strings.Contains(l, "_rank") {
				t.Errorf("%s is of no rank", l)
			}
		}
	}
}
