package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// leakOf asks diff about a run, whose first finding must be a leak of a script's
// marked line, and returns it.
func leakOf(t *testing.T, dir, path string) finding {
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
		text.Reset()
		run([]string{"diff", "--all", dir}, nil, &text, &errs)
		t.Errorf("first is %s at %v, want line %d:\n%s", first.Verdict, first.Frames, line, &text)
	}
	return first
}

const jaxScript = "../../testdata/scripts/jax_leak.py"

func TestTheGuiltyLineOfAJAXProgramIsFirst(t *testing.T) {
	heavytest.Skip(t, "it trains with JAX")
	t.Parallel()
	r := recordProgram(t, []string{"record"}, pythonOf(t, "jax", "import jax"), jaxScript)
	if r.code != exitFine {
		t.Fatalf("exit code %d", r.code)
	}
	if r.stdout != "0.132, 400 gradients\n" {
		t.Errorf("it printed %q", r.stdout)
	}
	if h := leakOf(t, r.dir, jaxScript).Holder; h == nil || h.Path != "main.<locals>.history" || h.Items < 200 {
		t.Errorf("it is held by %+v", h)
	}
	run, err := files.OpenRun(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range run.Snapshots {
		if s.Mark.Time.IsZero() {
			t.Errorf("nothing tells when snapshot %d was taken", i)
		}
	}
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
	t.Parallel()
	if r := recordProgram(t, []string{"record"}, pythonOf(t, "jax", "import jax"), "-c", starting); r.code != exitFine {
		t.Errorf("exit code %d: %s", r.code, r.stdout)
	}
}

func TestARecordedRunOfJAXIsJudged(t *testing.T) { leakOf(t, "../../testdata/jax-run", jaxScript) }
