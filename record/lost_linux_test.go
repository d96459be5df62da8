package record_test

import "testing"

// stacks opens windows around code of a thousand lines, which keeps nothing or as much as it is asked to.
const stacks = windowsByHand + `
import _tracemalloc
from memdiag._own import held
code = compile("[[]]\n" * 1000, "work.py", "exec")
def grown(keep):
    level = lambda: held(agent.heap.malloc()) - agent.own.bytes
    kept, levels = [], []
    for _ in range(4):
        windows.start()
        exec(code, {})
        kept.append(bytes(keep))
        windows.traces = len(_tracemalloc._get_traces())  # as a look does
        windows.stop()
        kept.append(bytes(keep))
        levels.append(level())
    return levels[-1] - levels[0]
print(grown(0) < 10_000, grown(50_000) > 140_000)
`

// TestWhatTracingLosesIsNoGrowth: Python before 3.13 never frees the stacks that a window has seen, and clean programs were said to leak.
func TestWhatTracingLosesIsNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, stacks, "True True\n")
}
