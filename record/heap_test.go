//go:build unix

package record_test

import "testing"

// prepares reads Python's heap behind an import, and then behind the program's own work, by the
// names of functions.
const prepares = `
import collections, types
from memdiag import _agent, _heap, _names

class Made:
    def rows(self):
        def row(i):
            return [float(i), float(i + 1)]
        return [row(i) for i in range(600)]
torch = types.SimpleNamespace(module=None, recalibrate=lambda: None, lines=collections.Counter)
heap = _heap.Heap(types.SimpleNamespace(settings={}, step=0, torch=torch, spent=0))
def told():
    snapshot = _agent.Snapshot()
    heap.lines(snapshot)
    return {snapshot.stacks.frames[s[0]][0] for s in snapshot.stacks.stacks[1:]}
heap.trace()
of_import = Made().rows()
print("Made.rows.<locals>.row" in told())
heap.prepared()
print("Made.rows.<locals>.row" in told())
work = Made().rows()
print("Made.rows.<locals>.row" in told())
heap.stop()

import json
names = _names.Names()
at = max(n for _, _, n in json.loads.__code__.co_lines() if n)
print(names.of(json.__file__, at), names.of(json.__file__, 1), names.of("/nowhere.py", 1) == "", names.of(__file__, 2))
`

func TestWhatAnImportMadeIsNotReadAgain(t *testing.T) {
	t.Parallel()
	agentProgram(t, prepares, "True\nFalse\nTrue\nloads <module> True <module>\n")
}
