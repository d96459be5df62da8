//go:build unix

package record_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot/files"
)

// leakyThread keeps lists in a thread until there are six snapshots, for which the main thread is in one call.
const leakyThread = `
import glob, queue, sys, threading, time
kept, began = [], time.time()
def work():
    while len(glob.glob(sys.argv[2] + "/snapshot_*.json")) < 6 and time.time() < began + 60:
        kept.append([float(j) for j in range(200)])
        time.sleep(0.005)
    empty.put(None)
empty = queue.Queue()
t = threading.Thread(target=work)
t.start()
{"join": t.join, "get": empty.get}[sys.argv[1]]()
`

func TestAMainThreadThatWaitsIsRecorded(t *testing.T) {
	path := script(t, leakyThread)
	for _, how := range []string{"join", "get"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			r := runInto(t, dir, record.Options{}, python(t), path, how, dir)
			if r.ExitCode != 0 || r.stdout != "" || r.stderr != "" || r.Snapshots < 6 {
				t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
			}
		})
	}
}

// exiting spends a second in Python's exit, in which its only other thread works if the argument is "works".
const exiting = `
import sys, threading, time
threading._register_atexit(time.sleep, 1)
if sys.argv[1] == "works":
    threading.Thread(target=time.sleep, args=(2,)).start()
time.sleep(1)
print(time.time())
`

func TestAProgramThatExitsIsNotLookedAt(t *testing.T) {
	path := script(t, exiting)
	for _, how := range []string{"works", "exits"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			r := runInto(t, dir, record.Options{}, python(t), path, how)
			ended, err := strconv.ParseFloat(strings.TrimSpace(r.stdout), 64)
			if err != nil {
				t.Fatal(err)
			}
			run, err := files.OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			last := run.Snapshots[len(run.Snapshots)-1].Mark.Time
			if late := last.Sub(time.UnixMicro(int64(ended*1e6))) > 100*time.Millisecond; late != (how == "works") {
				t.Errorf("the last snapshot is of %s, the program ended at %s", last, r.stdout)
			}
		})
	}
}

// blocking gets signals while it blocks them, as one does that saves a checkpoint.
const blocking = `
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM"))
both = signal.SIGTERM, signal.SIGUSR2
signal.pthread_sigmask(signal.SIG_BLOCK, both)
for s in both:
    os.kill(os.getpid(), s)
time.sleep(0.3)
print("saved", signal.sigpending() == set(both))
signal.pthread_sigmask(signal.SIG_UNBLOCK, both[:1])
`

func TestASignalThatIsBlockedWaits(t *testing.T) {
	t.Parallel()
	r := runInto(t, filepath.Join(t.TempDir(), "run"), record.Options{}, python(t), script(t, blocking))
	if r.ExitCode != 0 || r.stdout != "saved True\nSIGTERM\n" || r.stderr != "" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}

// own has our thread at work while the program's comes to a step, while a function ends, and in a fork.
const own = `
import _thread, threading, time, types, weakref
from memdiag import _ticks
from memdiag._agent import Agent

a = Agent({"dir": ".", "rank": -1})
a.ticker = ticker = _ticks.Ticker(a)
begun, done = threading.Event(), []
def work():
    ticker.thread = _thread.get_ident()
    def snapshot():
        begun.set()
        time.sleep(0.2)
        done.append("snapshot")
    with ticker.lock:
        a.guarded("tick", snapshot)
threading.Thread(target=work).start()
begun.wait()
a.guarded("step", done.append, "step")
a.guarded("outer", lambda: a.guarded("inner", done.append, "inner"))
print(done)

import ctypes, sys
for initializing in (True, False):
    ctypes.__spec__._initializing, ticker.asked = initializing, lambda importing: done.append(initializing)
    ticker.handle(0, sys._getframe())
print(done[2:])

class Thing:
    pass
def function():
    thing = Thing()
    threading.Thread(target=ticker.act).start()
    begun.wait()
    return weakref.ref(thing)
ended = threading.Event()
begun.clear()
ticker.main, ticker.asked = _thread.get_ident(), lambda importing: (begun.set(), ended.wait(60))
thing = function()
print(thing())
ended.set()
with ticker.lock:
    pass

ticker.lock.acquire()
a.torch = types.SimpleNamespace(module=None)
a.forked()
print(ticker.lock.locked())
`

func TestAStepWaitsForASnapshotOfOurThread(t *testing.T) {
	t.Parallel()
	agentProgram(t, own, "['snapshot', 'step']\n[False]\nNone\nFalse\n")
}

// spaced is a program by the clock or by steps, whose snapshots take so long. The short one is a training of
// 6,000 steps of half a millisecond, whose snapshots take 60 steps each.
const spaced = `
from memdiag import _agent

def gaps(cost, steps, length=1000, step=0.1):
    a = _agent.Agent({"dir": ".", "rank": -1})
    a.torch = type("Torch", (), {"settled": lambda self: True})()
    a.heap = type("Heap", (), {"tracing": False, "windows": type("Windows", (), {"opened": None})})()
    now, taken = 0.0, []
    a.began, a.elapsed, a.ran = (0.0, 0.0), lambda: now, lambda: now
    while now < length:
        now += step
        a.step += steps
        if a.due(a.step) if steps else a.affordable(_agent.TICKS_ALLOWANCE, _agent.TICKS_SHARE) or a.late():
            taken.append(now)
            a.written.append([a.step, ""])
            if steps:
                a.every = max(1, a.step // 32)
            a.last, a.since, a.ran_before = cost, now, now
            a.spent += cost
    assert a.spent < 2 + 0.05 * now, (cost, steps, a.spent)
    return zip(taken, [*taken[1:], now])
for cost in 0.001, 0.05, 0.4, 3.0:
    for steps in 0, 1:
        for x, y in gaps(cost, steps):
            assert y - x <= max(0.11 * x, min(cost / 0.03, max(0.31 * x, cost / 0.1))) + 0.2, (cost, steps, x, y)
*_, (x, y) = gaps(0.03, 1, 3, 0.0005)
assert y - x < y / 4, (x, y)

def waits(cost, length, **settings):  # works for a third of its time, as a service does
    a = _agent.Agent({"dir": ".", "rank": -1, **settings})
    now, due, taken = 0.0, 0.0, []
    a.began, a.elapsed, a.ran = (0.0, 0.0), lambda: now / 3, lambda: now
    while now < length:
        now += 0.05
        if now >= due and (a.affordable(_agent.TICKS_ALLOWANCE, _agent.TICKS_SHARE) or a.late()):
            taken.append(now)
            a.ticks, a.last, a.since, a.ran_before = a.ticks + 1, cost, now / 3, now
            a.spent += cost
            due = now + max(0.05, a.spread())
    return [*zip(taken, [*taken[1:], now])]
for cost in 0.005, 0.018, 0.03:
    for x, y in waits(cost, 6):
        assert y - x <= max(0.5, x / 3, 3 * cost / 0.1 + 0.1), (cost, x, y)
    assert len([x for x, _ in waits(cost, 6) if x > 1.5]) >= 4, (cost, waits(cost, 6))
few, many = waits(0.03, 12), waits(0.03, 12, experiment=True)  # which may cost more
assert len(many) >= 1.5 * len(few), (few, many)
`

func TestTheNextSnapshotIsNeverFarHoweverDearTheyAre(t *testing.T) {
	t.Parallel()
	agentProgram(t, spaced, "")
}

// taken has our thread do what the main thread was asked for, when that one begins to.
const taken = `
import types
from memdiag import _ticks

def runs(frame):
    ticker.asked = None
    return True
_ticks.runs = runs
ticker = _ticks.Ticker(types.SimpleNamespace(seconds=0, child=False, interrupting=False, switch=lambda callback: None, guarded=lambda what, f, *_: print(what, f)))
ticker.asked = "snapshot"
ticker.handle(None, None)
`

func TestWhatTheMainThreadWasAskedForIsNotTakenFromIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, taken, "tick snapshot\n")
}

// long has the main thread look for so long that our thread takes it for one that does not answer.
const long = `
import sys, types
from memdiag import _ticks

_ticks.runs = lambda frame: True
ticker = _ticks.Ticker(types.SimpleNamespace(seconds=0, child=False, interrupting=False, switch=lambda callback: None, guarded=lambda what, f, *args: f(*args)))
ticker.asked = lambda importing: ticker.act()
ticker.handle(None, sys._getframe())
print(ticker.owed)
`

func TestAMainThreadThatLooksForLongIsAskedAgain(t *testing.T) {
	t.Parallel()
	agentProgram(t, long, "False\n")
}

// stormed gets SIGUSR1 while it handles one, and more after that.
const stormed = `
import sys, time
from types import SimpleNamespace
from memdiag import _ticks

def runs(frame):
    calls.append(frame)
    ticker.handle(None, None)
    return True
def tick(forced):
    snapshots.append(forced)
    ticker.handle(None, None)
    time.sleep(0.05)
_ticks.runs, calls, snapshots = runs, [], []
agent = SimpleNamespace(seconds=0, child=False, interrupting=False, switch=lambda callback: None, guarded=lambda what, f, *args: f(*args), tick=tick)
ticker = _ticks.Ticker(agent)
ticker.asked = lambda importing: None
ticker.handle(None, None)
print(len(calls), ticker.requested, agent.interrupting)
for _ in range(3):
    ticker.handle(None, None)
print(snapshots, ticker.requested)
`

// A program that got SIGUSR1 every 10 ms stood still: the handler began within itself, each time with more frames to look at.
func TestAStormOfRequestsLeavesTheProgramItsTime(t *testing.T) {
	t.Parallel()
	agentProgram(t, stormed, "1 False False\n[True] True\n")
}

// collecting has few objects left until Python collects garbage, when our thread wakes.
const collecting = `
import gc, threading, time, types
from memdiag import _ticks
from memdiag._agent import Agent

main, kept, collected, naps = threading.get_ident(), [], [], []
class Cycle:
    def __del__(self): collected.append(threading.get_ident() == main)
def sleep(seconds):
    naps.append(seconds)
    near.set(); filled.wait(); filled.clear()
    ticker.running = len(naps) < 20
near, filled = threading.Event(), threading.Event()
a = Agent({"dir": ".", "rank": -1})
a.heap = types.SimpleNamespace(windows=types.SimpleNamespace(due=1.0, began=None, end_overdrawn=lambda: kept.extend([i] for i in range(40))), native=types.SimpleNamespace(on=False, overdrawn=lambda: False))
a.ticker = ticker = _ticks.Ticker(a)
ticker.ask = lambda what: None
ticker.running = True
_ticks.time = types.SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
thread = threading.Thread(target=ticker.loop)
thread.start()
while thread.is_alive():
    if not near.wait(0.1): continue
    near.clear()
    if len(naps) % 2:
        cycle = Cycle(); cycle.me = cycle; del cycle
        while gc.get_count()[0] < gc.get_threshold()[0] - 20: kept.append([])
    else:
        gc.collect()
    filled.set()
thread.join()
print(len(collected), all(collected))
`

// The __del__ of objects in cycles ran in the agent's thread, beside a program that has no other threads.
func TestGarbageIsNotCollectedInOurThread(t *testing.T) {
	t.Parallel()
	agentProgram(t, collecting, "10 True\n")
}

// importing is a script that imports, for which a window is wanted; later it works.
const importing = `
import time, types
from memdiag import _ticks

looks = []
windows = types.SimpleNamespace(due=1.0, began=None, look=lambda: looks.append(ticker.prepared))
agent = types.SimpleNamespace(seconds=0, child=False, heap=types.SimpleNamespace(windows=windows, prepared=lambda: None), prepared=lambda: None, tick=lambda: None)
ticker = _ticks.Ticker(agent)
ticker.begun = time.monotonic()
ticker.look(True)
print(looks, windows.due)
ticker.tick(False)
ticker.look(False)
ticker.prepared, ticker.begun = False, time.monotonic() - _ticks.IMPORTS
ticker.look(True)
print(looks)

ticker.running, agent.step, agent.explicit, agent.fixed = True, 0, False, 0
agent.torch = types.SimpleNamespace(works=False, since_import=1.0, seen=lambda: tensors)
import sys
sys.modules["torch"] = types
for tensors in (False, True):
    print([ticker.wanted(1.0 + after, 0.0, False) for after in (0.1, 1.0, 3.0)])
`

func TestImportsAreNotTracedAndALibrarysPyTorchIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	agentProgram(t, importing, "[] None\n[True, False]\n[False, True, True]\n[False, False, True]\n")
}

// starved has a heap of which a window is wanted again whenever one could not be opened.
const starved = `
import time, types
from memdiag import _ticks
from memdiag._agent import Agent

a = Agent({"dir": ".", "rank": -1})
a.heap = types.SimpleNamespace(windows=types.SimpleNamespace(due=1.0, began=None, end_overdrawn=lambda: None), native=types.SimpleNamespace(on=False, overdrawn=lambda: False))
a.ticker = ticker = _ticks.Ticker(a)
asked = []
ticker.ask = lambda what: asked.append(what.__name__)
ticker.running = True
import threading
thread = threading.Thread(target=ticker.loop, daemon=True)
thread.start()
until = time.time() + 30
while not {"tick", "look"} <= set(asked) and time.time() < until:
    time.sleep(0.01)
print(*sorted(set(asked)))
a.heap.windows.began = 1.0
time.sleep(0.1)
del asked[:]
time.sleep(0.3)
ticker.running = False
thread.join()
print("in a window:", *set(asked))
`

func TestAWindowThatIsWantedLeavesTimeForSnapshots(t *testing.T) {
	t.Parallel()
	agentProgram(t, starved, "look tick\nin a window: look\n")
}

// dropped has snapshots by the clock beside files of the user.
const dropped = `
import os, tempfile
from memdiag._agent import Agent

def left(rank):
    with tempfile.TemporaryDirectory() as dir:
        for name in ("snapshot_t1.json", "snapshot_t2_rank0.json", "snapshot_t3.memdiag", "snapshot_train.py", "snapshot_t4.py", "snapshot_train_rank0.json"):
            open(os.path.join(dir, name), "w").close()
        a = Agent({"dir": dir, "rank": -1})
        a.rank = rank
        a.drop_ticks()
        return sorted(os.listdir(dir))
print(left(None))
print(left(0))
`

func TestSnapshotsByTheClockAreDroppedAndNoFileOfTheUser(t *testing.T) {
	t.Parallel()
	agentProgram(t, dropped, "['snapshot_t2_rank0.json', 'snapshot_t4.py', 'snapshot_train.py', 'snapshot_train_rank0.json']\n"+
		"['snapshot_t4.py', 'snapshot_train.py', 'snapshot_train_rank0.json']\n")
}

// launcher has snapshots by the clock when a rank that it has started begins to have some.
const launcher = `
import os, tempfile, types
from memdiag._agent import Agent

Agent.torch = types.SimpleNamespace(module=None, cuda=None)
with tempfile.TemporaryDirectory() as dir:
    a = Agent({"dir": dir, "rank": -1, "report": ".agent_"})
    print(a.owns("tick"))
    open(os.path.join(dir, "snapshot_t1.json"), "w").close()
    a.written.append(["t1", "snapshot_t1.json"])
    os.environ["RANK"] = "1"
    rank = Agent({"dir": dir, "rank": -1, "report": ".agent_"})
    print(rank.owns("tick"), os.listdir(dir).count("snapshot_t1.json"))
    open(os.path.join(dir, "snapshot_t2.json"), "w").close()
    print(a.owns("tick"), rank.owns("tick"), sorted(n for n in os.listdir(dir) if n[0] != "."))
`

func TestALauncherLeavesTheRecordToTheRanks(t *testing.T) {
	t.Parallel()
	agentProgram(t, launcher, "True\nTrue 0\nFalse True []\n")
}

// patient asks for snapshots by the clock while PyTorch is imported, soon after, and later.
const patient = `
import sys, types
from memdiag import _ticks, _torch

agent = types.SimpleNamespace(seconds=0, child=False, step=0, stepping=False, explicit=False, fixed=0)
agent.torch = _torch.Torch(agent)
agent.torch.table = {1: None}
ticker = _ticks.Ticker(agent)
sys.modules["torch"] = None
before = ticker.wanted(100.0, 0.0, False)
agent.torch.since_import = 99.0
print(before, ticker.wanted(100.0, 0.0, False), ticker.wanted(101.5, 0.0, False))
`

func TestTheClockWaitsForTheFirstStepFromTheImportOfPyTorch(t *testing.T) {
	t.Parallel()
	agentProgram(t, patient, "False False True\n")
}

// TestAScriptThatTrainsAwaitsSteps: of its own text alone, and as its snapshots by the clock say.
func TestAScriptThatTrainsAwaitsSteps(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
from memdiag import _ticks
def says(text):
    return _ticks.TRAINS.search(text) is not None
print(says(b"import torch\nfrom torch import optim\n"), says(b"loss.backward()"), says(b"Trainer(model).train()"), says(b"mark(step=3)"))
print(says(b"import torch\nmodel.eval()\noptimal = model(x)\n"), says(b"mark(phase='serve')"), says(b"benefit(x)"))
print(_ticks.trains())
`, "True True True True\nFalse False False\nTrue\n")
}

// returned asks in a process of multiprocessing's whether the program runs: in its function, as that lets go of what it has, and at the end.
const returned = `
import multiprocessing, multiprocessing.util, os, sys
from memdiag import _ticks

def say(frame):
    os.write(1, b"%r\n" % _ticks.runs(frame))
class Kept:
    def __del__(self):
        say(sys._getframe().f_back)
def work():
    kept = Kept()
    multiprocessing.util.Finalize(None, lambda: say(sys._getframe()), exitpriority=0)
    real, os._exit = os._exit, lambda code: (say(sys._getframe()), real(code))
    say(sys._getframe())
if __name__ == "__main__":
    for method in "fork", "spawn":
        p = multiprocessing.get_context(method).Process(target=work)
        p.start()
        p.join()
    say(sys._getframe())
`

// A worker's last snapshot was taken after its function had returned: all that leaked was gone.
func TestWhatAWorkerFreesAtItsEndIsNotLookedAt(t *testing.T) {
	t.Parallel()
	agentProgram(t, returned, "True\nFalse\nFalse\nFalse\nTrue\nFalse\nFalse\nTrue\n")
}
