package record_test

import "testing"

// watchedCalls has a watch look at calls that each leave a tensor, and a report written afterwards.
const watchedCalls = `
import contextlib, json
from types import SimpleNamespace as Fake
from memdiag import _report, _watch

class Storage:
    def _weak_ref(self): return self
    def nbytes(self): return 512

class Agent(_report.Report):
    def __init__(self):
        super().__init__()
        self.torch = Fake(module=Fake(UntypedStorage=Fake(_expired=lambda s: False, _free_weak_ref=lambda s: None)))
        self.own, self.elapsed = contextlib.nullcontext(), lambda: 0
        self.holders = Fake(walk=lambda *_: None, found={})
        self.losses, self.peaks, self.intervention, self.attached = Fake(flush=lambda: None), None, None, None
        self.pid, self.owner, self.step, self.rank, self.written, self.asleep, self.number = 1, {}, 0, None, [], False, 0
        self.stopped = False
        self.sources, self.settings = [], {"report": ""}
    def note(self, text):
        self.notes[text] = 1
    def write(self, name, text):
        print(*json.loads(text)["notes"], sep="\n")

live = {}
_watch.storages = lambda torch, deep: dict(live)
for looked, calls, state in (100, 100, "left"), (15, 240, "left"), (1, 9, "left"), (0, 9, "left"), (90, 90, "started"), (80, 80, "stopped"):
    live.clear()
    agent = Agent()
    stays = _watch.stays_of(agent, "leaks")
    stays.affords = lambda spent: stays.calls < looked
    for _ in range(calls):
        stays.begin(True)
        s = Storage()
        live[s] = s
        stays.end(True)
    agent.stopped = state == "stopped"
    agent.report(state)
`

// looked is what watchedCalls prints.
const looked = `watch "leaks": after 100 calls 100 tensors (50.0 KiB) stay
watch "leaks": after 15 calls 15 tensors (7.5 KiB) stay; 15 of 240 calls were looked at
watch "leaks": after 1 call no tensor stays; 1 of 9 calls was looked at

watch "leaks": after 90 calls 90 tensors (45.0 KiB) stay; later calls were not recorded
watch "leaks": after 80 calls 80 tensors (40.0 KiB) stay; later calls were not recorded
`

// interruptedCalls has the agent at work in another thread when one call ends and another begins.
const interruptedCalls = watchedCalls + `
import memdiag
print("busy:")
live.clear()
agent = memdiag._running = Agent()
agent.guarded = lambda what, f: None if busy else f()
_watch.stays_of(agent, "leaks").affords = lambda spent: True
for i in range(240):
    busy = i == 100
    with memdiag.watch("leaks"):
        s = Storage()
        live[s] = s
        busy = i == 2
agent.report("left")
`

// TestAWatchSaysHowManyCallsItLookedAt also if the process is killed after a report: "after 15 calls 15 tensors stay" was all that a run of 240 calls said.
func TestAWatchSaysHowManyCallsItLookedAt(t *testing.T) {
	t.Parallel()
	agentProgram(t, watchedCalls, looked)
}

// TestAWatchCountsCallsWhileTheAgentIsBusy: after an end that was missed, all later calls counted as parts of the same one.
func TestAWatchCountsCallsWhileTheAgentIsBusy(t *testing.T) {
	t.Parallel()
	agentProgram(t, interruptedCalls, looked+`busy:
watch "leaks": after 240 calls about 240 tensors (120.0 KiB) stay; 238 of 240 calls were looked at
`)
}

// TestAForkedProcessCountsItsOwnCalls: each loader's worker repeated the line of a function that only the main process calls.
func TestAForkedProcessCountsItsOwnCalls(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
import types
from memdiag import _ticks, _watch
from memdiag._agent import Agent

agent = Agent({"dir": ".", "rank": -1})
agent.torch, agent.ticker = types.SimpleNamespace(module=None), _ticks.Ticker(agent)
_watch.stays_of(agent, "step").calls = 200
agent.forked()
print(_watch.stays_of(agent, "step").calls)
`, "0\n")
}
