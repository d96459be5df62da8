package record_test

import (
	"testing"
)

// passes has the agent's thread pass by twenty times a second, while steps come so many seconds apart.
const passes = `
import types
from memdiag import _ceased

def ceased(*apart, quiet, **other):
    agent = types.SimpleNamespace(step=0, fixed=0, number=0, intervention=None, owner={"step": True})
    vars(agent).update(other)
    c, now = _ceased.Ceased(agent), 100.0
    def wait(seconds):
        nonlocal now
        for _ in range(round(20 * seconds)):
            now += 0.05
            c.look(now)
    for seconds in apart:
        agent.step += 1
        wait(seconds)
    agent.step += 1
    wait(quiet)
    return c.due()

print([ceased(0.1, 0.1, 0.1, quiet=s) for s in (1, 4.9, 5.3, 60)], "steps of 0.1 s")
print([ceased(0.1, 3, 0.1, quiet=s) for s in (5.3, 29, 31)], "with an evaluation of 3 s")
print([ceased(2, quiet=s) for s in (19, 21)], "two steps")
print([ceased(0.1, quiet=60, **other) for other in ({"fixed": 10}, {"number": 3}, {"intervention": 1}, {"owner": {"tick": True}})], "others")
print(ceased(quiet=0), ceased(0.1, quiet=0), "none yet")

agent = types.SimpleNamespace(step=4, fixed=0, number=0, intervention=None, owner={"step": True})
c = _ceased.Ceased(agent)
for now in (0, 3600, 7200, 7200.1):
    c.look(now)
print(c.due(), "a process that was stopped meanwhile")

c = _ceased.Ceased(agent)
dues = []
for i in range(400):
    c.look(i / 20)
    dues.append(c.due())
    if i < 200:
        c.end()
print(any(dues[:200]), dues[-1], "an optimizer steps within an epoch, which the program counts")
`

func TestStepsHaveCeasedWhenNoneCameForLong(t *testing.T) {
	t.Parallel()
	agentProgram(t, passes, "[False, False, True, True] steps of 0.1 s\n[False, False, True] with an evaluation of 3 s\n[False, True] two steps\n"+
		"[False, False, False, False] others\nFalse False none yet\nFalse a process that was stopped meanwhile\n"+
		"False True an optimizer steps within an epoch, which the program counts\n")
}

// resumed takes snapshots by the clock after step 4, and then a step comes.
const resumed = `
import os, tempfile, types
from memdiag import _agent, _heap

with tempfile.TemporaryDirectory() as dir:
    a = _agent.Agent({"dir": dir, "rank": -1, "report": ".agent_"})
    a.torch = types.SimpleNamespace(skip=9, stretch=0.0, module=None)
    a.heap = types.SimpleNamespace(windows=types.SimpleNamespace(stop=lambda: None), told={1: 2}, rows={})
    a.heap.begin_anew = lambda: vars(a.heap).update(windows=types.SimpleNamespace(stop=lambda: None), told={})
    a.holders = types.SimpleNamespace(next=7, next_look=8, containers=types.SimpleNamespace(next=9))
    a.ticker = types.SimpleNamespace(begin_anew=lambda: None, interval=1)
    a.step, a.written, a.spent, a.began = 4, [[4, "snapshot_4.json"]], 3.5, (0.0, 0.0)
    windows = a.heap.windows
    a.ceased.begin()
    print(a.stepping, a.written, a.torch.skip, 0 < a.torch.stretch == a.ceased.elapsed, a.heap.told, a.holders.next, a.affordable(_agent.TICKS_ALLOWANCE, _agent.TICKS_SHARE))
    for a.ticks in range(1, 40):
        name = "snapshot_t%d_after%d.json" % (a.ticks, a.ceased.after)
        open(os.path.join(dir, name), "w").close()
        a.written.append(["t%d" % a.ticks, name])
        a.thin()
    print(len(a.written), len(os.listdir(dir)), a.ticker.interval, a.every)
    a.ceased.end()
    print(a.stepping, a.written, a.spent, a.ticks, a.heap.told, a.heap.windows is windows, a.holders.next, os.listdir(dir))
`

// TestAStepAfterAPauseTakesBackWhatCameByTheClock: an evaluation between steps changes no snapshot of theirs.
func TestAStepAfterAPauseTakesBackWhatCameByTheClock(t *testing.T) {
	t.Parallel()
	agentProgram(t, resumed, "False [] 0 True {} 0 True\n"+"23 23 2 1\n"+"True [[4, 'snapshot_4.json']] 3.5 0 {1: 2} True 7 []\n")
}

func TestAFullDiskAfterTheLastStepEndsNoRecording(t *testing.T) {
	agentProgram(t, `
import errno, types
from memdiag import _agent
def write(name, text): raise OSError(errno.ENOSPC, "full")
def keep(step, stepping):
    agent = types.SimpleNamespace(write=write, halve=lambda: False, step=step, stepping=stepping, note=print)
    try:
        _agent.Agent.keep(agent, 1, "snapshot", "", 0.0)
    except OSError as e:
        print("stops:", e.strerror)
keep(4, False)
keep(4, True)
keep(0, False)
`, "the disk was full: there are fewer snapshots of what came after the last step\nstops: full\nstops: full\n")
}
