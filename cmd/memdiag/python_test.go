package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// pythons are the ways to a Python, by what it imports: an import takes seconds.
var pythons sync.Map

// pythonOf is a Python of a framework, torch or jax, in which a line of imports works.
func pythonOf(t *testing.T, framework, imports string) string {
	t.Helper()
	if heavytest.Race {
		t.Skip("the race detector does not see into a Python process, and slows what is beside it")
	}
	if testing.Short() {
		t.Skip("each import of " + framework + " takes seconds")
	}
	search, _ := pythons.LoadOrStore(imports, sync.OnceValue(func() string {
		candidates := []string{os.Getenv("MEMDIAG_" + strings.ToUpper(framework) + "_PYTHON")}
		if cache, err := os.UserCacheDir(); err == nil {
			candidates = append(candidates, filepath.Join(cache, "memdiag", framework, "bin", "python"))
		}
		for _, python := range append(candidates, "python3") {
			if python != "" && recordtest.Command(t, python, "-c", imports).Run() == nil {
				return python
			}
		}
		return ""
	}))
	python := search.(func() string)()
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatalf("no Python here that can %s; .ci/run installs it", imports)
	}
	if python == "" {
		t.Skipf("no Python here that can %s; make torch installs PyTorch beside the repository", imports)
	}
	return python
}

// torchPython is a Python that has PyTorch 2.1 or later.
func torchPython(t *testing.T) string {
	t.Helper()
	return pythonOf(t, "torch", "import torch, numpy; torch.UntypedStorage._weak_ref")
}

// recordedProgram is what came of a command that memdiag recorded.
type recordedProgram struct {
	dir    string // of the run
	code   int
	stdout string
	said   string // on standard error, which a test that fails tells
}

// recordProgram runs memdiag record or gate, with its flags, on a program, and ends the
// program should it hang.
func recordProgram(t *testing.T, flags []string, program ...string) recordedProgram {
	t.Helper()
	r := recordedProgram{dir: filepath.Join(t.TempDir(), "run")}
	recordtest.Bound(t, r.dir) // which is in the agent's settings
	var out, said bytes.Buffer
	r.code = run(slices.Concat(flags, []string{"-o", r.dir, "--"}, program), nil, &out, &said)
	r.stdout, r.said = out.String(), said.String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("memdiag %s said %s", flags[0], r.said)
		}
	})
	return r
}
