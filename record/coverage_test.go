package record_test

import (
	"testing"

	"github.com/memdiag/memdiag/record"
)

// follows is a coverage tool that asks of each file that runs what coverage.py asks: the name in __file__, which is no
// file's if it begins with "<".
const follows = `
import memdiag, os, sys
agents, counted = os.path.dirname(memdiag.__spec__.origin), set()
def called(frame, event, arg):
    file = frame.f_globals.get("__file__") or frame.f_code.co_filename
    if file.startswith(agents):
        counted.add(file)
    return called
kept = []
sys.settrace(called)
for step in range(300):
    kept.append(bytearray(5000))
    memdiag.mark(step=step)
memdiag.snapshot()
sys.settrace(None)
print(counted)
`

func TestCoverageCountsNoFileOfTheAgent(t *testing.T) {
	r := runInto(t, t.TempDir(), record.Options{}, python(t), script(t, follows))
	if r.ExitCode != 0 || r.stdout != "set()\n" || r.Snapshots < 2 {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}

// begins is coverage.py begun before the agent, by a file of site-packages.
const begins = `
import sys, types
counts = types.SimpleNamespace(data={}, should_trace_cache={})
def called(frame, event, arg):
    file = frame.f_code.co_filename
    if counts.should_trace_cache.setdefault(file, types.SimpleNamespace(trace=True)).trace:
        lines = counts.data.setdefault(file, set())
        return lambda frame, event, arg: lines.add(frame.f_lineno)
sys.modules["coverage"] = types.SimpleNamespace(Coverage=types.SimpleNamespace(current=lambda: types.SimpleNamespace(_collector=counts)))
sys.settrace(called)
import sitecustomize
sys.settrace(None)
import memdiag
print(memdiag._running is not None, [file for file in counts.data if "sitecustomize" in file])
`

func TestCoverageThatBeganBeforeTheAgentCountsNoFileOfIt(t *testing.T) {
	r := runInto(t, t.TempDir(), record.Options{}, python(t), "-S", script(t, begins))
	if r.ExitCode != 0 || r.stdout != "True []\n" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}
