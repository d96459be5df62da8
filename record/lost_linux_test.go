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

// TestWhatTracingLosesIsNoGrowth: Python before 3.12.5 never frees the stacks that a window has seen, and clean programs were said to leak.
func TestWhatTracingLosesIsNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, stacks, "True True\n")
}

// noisy has another thread free more, when a window begins, than the stacks take, and tells whether what tracing has left was taken off.
const noisy = windowsByHand + `
import _tracemalloc
from memdiag._own import held
code = compile("[[]]\n" * 1000, "work.py", "exec")
real, freed = agent.heap.malloc, 0
def freeing():
    global freed
    freed += 5000
    used, *others = real()
    return used - freed, *others
for malloc in real, freeing:  # the first window makes more than stacks
    windows = _windows.Windows(agent, malloc)
    before, agent.own.bytes = held(real()), 0
    windows.start()
    windows.malloc = real
    exec(code, {})
    windows.traces = len(_tracemalloc._get_traces())
    windows.stop()
print((agent.own.bytes > 20_000) == (held(real()) - before > 20_000))
`

// TestWhatOtherThreadsFreeDoesNotTellWhetherTracingLoses: whether it does was tried, and 1,200 bytes that a thread freed were the answer.
func TestWhatOtherThreadsFreeDoesNotTellWhetherTracingLoses(t *testing.T) {
	t.Parallel()
	agentProgram(t, noisy, "True\n")
}
