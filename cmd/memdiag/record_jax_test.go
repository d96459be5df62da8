//go:build !race

// As of the recording of PyTorch: it is done by a Python process.

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// jaxPython is a Python that has JAX.
func jaxPython(t *testing.T) string {
	t.Helper()
	candidates := []string{os.Getenv("MEMDIAG_JAX_PYTHON")}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(cache, "memdiag", "jax", "bin", "python"))
	}
	for _, python := range append(candidates, "python3") {
		if python != "" && exec.Command(python, "-c", "import jax").Run() == nil {
			return python
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no JAX here; .ci/run installs it")
	}
	t.Skip("no JAX here; MEMDIAG_JAX_PYTHON names a Python that has it")
	return ""
}

// leakOf asks diff about a run, whose first finding must be a leak of a script's
// marked line.
func leakOf(t *testing.T, dir, path string) {
	t.Helper()
	var text, errs bytes.Buffer
	if code := run([]string{"diff", "--format", "json", dir}, nil, &text, &errs); code != exitFine {
		t.Fatalf("diff ended with %d: %s", code, &errs)
	}
	var result struct{ Findings []finding }
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	line, _ := marked(t, path, "leak")
	if len(result.Findings) == 0 {
		t.Fatal("no finding")
	}
	first := result.Findings[0]
	if f := first.Frames[0]; first.Verdict != "leak" || filepath.Base(f.File) != filepath.Base(path) || f.Line != line {
		t.Errorf("first is %s at %v, want line %d", first.Verdict, first.Frames, line)
	}
}

const jaxScript = "../../testdata/scripts/jax_leak.py"

func TestTheGuiltyLineOfAJAXProgramIsFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("the script imports JAX")
	}
	python := jaxPython(t)
	dir := filepath.Join(t.TempDir(), "run")
	var out, said bytes.Buffer
	if code := run([]string{"record", "-o", dir, "--", python, jaxScript}, nil, &out, &said); code != exitFine {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	if out.String() != "0.132, 400 gradients\n" {
		t.Errorf("it printed %q", &out)
	}
	leakOf(t, dir, jaxScript)
}

// starting holds JAX's lock for long enough to be looked at by the clock, as JAX does while it makes its devices.
const starting = `
import time, jax
from jax._src import xla_bridge
for _ in range(2):
    with xla_bridge._backend_lock:
        begun = time.monotonic()
        while time.monotonic() < begun + 1:
            pass
    jax.numpy.ones(4)
`

func TestAJAXProgramIsLeftAloneWhileItMakesItsDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("the script imports JAX")
	}
	python := jaxPython(t)
	var out, said bytes.Buffer
	if code := run([]string{"record", "-o", filepath.Join(t.TempDir(), "run"), "--", "timeout", "-s", "KILL", "60", python, "-c", starting}, nil, &out, &said); code != exitFine {
		t.Errorf("exit code %d: %s%s", code, &out, &said)
	}
}

func TestARecordedRunOfJAXIsJudged(t *testing.T) { leakOf(t, "../../testdata/jax-run", jaxScript) }
