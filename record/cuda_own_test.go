//go:build unix

package record_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot/files"
)

func TestARecordThatTheProgramEndsIsBegunAgain(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{Every: 2}, python(t), script(t, `
import torch
from torch.optim.optimizer import Optimizer
on = False
inner = torch.memory._record_memory_history
def history(enabled="all", context="all", stacks="all", max_entries=1, device=None):
    global on
    on = enabled is not None
    inner(enabled, context, stacks, max_entries, device)
torch.memory._record_memory_history = history
torch._C._cuda_isHistoryEnabled = lambda: on
torch.cuda.used = True
o = Optimizer()
for i in range(8):
    o.step()
    if i == 3: history(None)`))
	if want := "history all alloc"; r.ExitCode != 0 || strings.Count(r.stdout, want) != 2 || !r.noted("started it again") {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}

// The record of allocations is nearly all of a snapshot. Without room for it recording stopped.
func TestWithoutRoomForTheRecordThereAreSnapshotsWithoutIt(t *testing.T) {
	withFakeTorch(t)
	r := runOf(t, record.Options{Every: 1}, python(t), script(t, `
import errno, memdiag, torch
from torch.optim.optimizer import Optimizer
agent, inner = memdiag._running, torch.memory._snapshot
write = agent.write
def full(name, text):
    if len(text) > 60_000: raise OSError(errno.EFBIG, "File too large")
    write(name, text)
def snapshot():
    events = [{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1_000_000 + i, "frames": []} for i in range(10_000)]
    return {**inner(), "device_traces": [events, []]}
agent.write, torch.memory._snapshot, torch.cuda.used = full, snapshot, True
o = Optimizer()
for torch.memory.live in range(1, 9):
    o.step()`))
	if r.ExitCode != 0 || r.Snapshots != 8 || r.noted("stopped") || !r.noted("from step 1 on snapshots lack PyTorch's record of allocations: File too large") {
		t.Errorf("%+v, %q, %q", r.Outcome, r.Notes, r.stderr)
	}
	if run, err := files.OpenRun(r.dir); err != nil || run.Snapshots[7].Blocks.Len() < 8 || run.Snapshots[7].History.Events != 0 {
		t.Errorf("%v", err)
	}
}

// What led to an out-of-memory error is worth more than every second snapshot, and a snapshot without it more than none.
func TestTheRecordOfAnOutOfMemoryErrorTakesTheRoomOfOthers(t *testing.T) {
	agentProgram(t, `
import errno, types
from memdiag._agent import Agent
for room in 9, 5:
    agent = Agent({"dir": ".", "rank": -1})
    agent.written, agent.spares, agent.step = [[i, str(i)] for i in range(8)], True, 8
    agent.remove, agent.torch = lambda name: None, types.SimpleNamespace(ahead=0.0)
    def write(name, text):
        if len(text) + len(agent.written) > room: raise OSError(errno.ENOSPC, "full")
    agent.write = write
    agent.keep(9, "9", "whole", 0.0, lambda: "")
    print(len(agent.written), *agent.notes)
`, `5 the disk was full: there are fewer snapshots
3 the disk was full: there are fewer snapshots from step 8 on snapshots lack PyTorch's record of allocations: full
`)
}

// The snapshot before an out-of-memory error may be the one with which there are too many, so that every second one is removed.
func TestTheSnapshotBeforeOutOfMemoryIsNotThinnedOut(t *testing.T) {
	agentProgram(t, `
import types
from memdiag import _agent, _cuda
torch = types.SimpleNamespace(version=types.SimpleNamespace(cuda=None), _C=types.SimpleNamespace())
agent = types.SimpleNamespace(fixed=0, seconds=0, stepping=True, every=4, ticks=0, asked=(), spares=False, step=133, removed=[], written=[[4 * i, "snapshot_%d" % (4 * i)] for i in range(1, 33)], elapsed=lambda: 0)
agent.remove = agent.removed.append
def take(step):
    agent.written.append([step, "snapshot_%d" % step])
    _agent.Agent.thin(agent)
agent.take, agent.guarded = take, lambda what, f, *args: f(*args)
cuda = _cuda.Cuda(agent, torch)
cuda.out_of_memory(0, 1, 1, 0)
print(len(agent.written), agent.written[-1], agent.spares)
`, "18 [134, 'snapshot_134'] False\n")
}

func TestARecordWithoutStacksGivesNoneToBackward(t *testing.T) {
	agentProgram(t, `
import sys
from memdiag import _backward
b = _backward.Backward()
clock = [0]
_backward.time.time = lambda: clock[0]
def backward(): b.called(sys._getframe(0))
user = {"filename": "train.py", "line": 7, "name": "step"}
def told(blocks, *events):
    clock[0] += 1
    forward = clock[0] - 0.5  # before the call of backward
    backward()
    clock[0] += 1
    t = {"segments": [{"blocks": [{"address": i, "state": "active_allocated", "frames": f} for i, f in enumerate(blocks)]}],
         "device_traces": [[{"action": "alloc", "addr": a, "size": 1, "time_us": int(1e6 * (forward + late)), "frames": f} for a, f, late in events]]}
    b.complete(t)
    return [[len(x["frames"]) for x in rows] for rows in (t["segments"][0]["blocks"], t["device_traces"][0])]
print(told([[user]], (0, [user], 0)))
print(told([[user], []], (9, [user], 0), (1, [], 1)))  # block 1 is a backward's
print(told([[user], [], []], (9, [], 0), (2, [], 0)))  # from now on nothing has a stack
print(told([[user], [], [], [], [user]], (4, [], 0), (3, [], 1)))  # blocks have one, and the list has none: context="state"
print(told([[user], [], [], [], [user], []], (9, [user], 0), (5, [], 1)))  # and now both
print(told([[user], [], [], [], [user], [], []], (6, [], 1)))  # the list is too short to tell
`, `[[1], [1]]
[[1, 2], [1, 2]]
[[1, 0, 0], [0, 0]]
[[1, 0, 0, 2, 1], [0, 0]]
[[1, 0, 0, 2, 1, 2], [1, 2]]
[[1, 0, 0, 2, 1, 2, 2], [2]]
`)
}

func TestBackwardsOnTwoLinesOfAFunctionAreToldApart(t *testing.T) {
	agentProgram(t, `
import sys, types
from memdiag import _backward
b = _backward.Backward()
clock = [0]
_backward.time.time = lambda: clock[0]
def library(): exec(compile("def call(): b.called(sys._getframe(0))", "/x/torch/y.py", "exec"), globals()); return call
call = library()
def train():
    clock[0] = 1
    call()
    clock[0] = 2
    call()
def told(blocks, events):
    t = {"segments": [{"blocks": [{"address": i, "requested_size": n, "state": "active_allocated", "frames": []} for i, n in enumerate(blocks)]}],
         "device_traces": [[{"action": "alloc", "addr": 50, "size": n, "time_us": int(1e6 * at), "frames": []} for n, at in events]
                           + [{"action": "alloc", "addr": 9, "size": 1, "time_us": int(1e6 * (clock[0] + 0.9)), "frames": [{"filename": "train.py", "line": 7, "name": "f"}]}]]}
    b.complete(t)
    return [[f["line"] for f in x["frames"] if f["name"] == "train"] for rows in (t["segments"][0]["blocks"], t["device_traces"][0]) for x in rows]
sys.modules["heapq"] = types.ModuleType("heapq")  # as while torch._dynamo imports it anew
told([], [])
train()
print(told([100, 200, 300], [(100, 1.1), (300, 1.2), (200, 2.1), (300, 2.2)]))  # of 300 bytes are both
t = {"segments": [{"blocks": [{"address": 1, "requested_size": 200, "state": "active_allocated", "frames": []}]}], "device_traces": []}
b.complete(t)
print([f["line"] for f in t["segments"][0]["blocks"][0]["frames"] if f["name"] == "train"])  # without a record
b.threads.add(0)
print(told([100], [(100, 1.1)]))  # two threads call backward
`, `[[11], [13], [], [11], [11], [13], [13], []]
[13]
[[], [], []]
`)
}
