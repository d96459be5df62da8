//go:build unix

package record_test

import (
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot/files"
)

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
torch = types.SimpleNamespace(module=None, cuda=None, recalibrate=lambda: None, lines=collections.Counter)
heap = _heap.Heap(types.SimpleNamespace(settings={}, number=0, child=False, step=0, stepping=False, torch=torch, elapsed=lambda: 9.0))
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

// dear takes snapshots by the clock that have cost too much already.
const dear = `
import contextlib, types
from memdiag import _agent

def snapshots(**settings):
    agent = _agent.Agent({"dir": "", "rank": -1, **settings})
    agent.spent, agent.since, agent.sources, taken = 100.0, 1e9, [], []
    agent.jax = types.SimpleNamespace(locked=lambda: False, tick=lambda: None)
    agent.torch, agent.own = types.SimpleNamespace(settled=lambda: True), contextlib.nullcontext()
    agent.ticker = types.SimpleNamespace(acts=lambda: True)
    agent.take = taken.append
    agent.tick()
    return len(taken)
print(snapshots(), snapshots(seconds=0.5))
`

func TestATimeBetweenSnapshotsThatIsAskedForIsKept(t *testing.T) {
	t.Parallel()
	agentProgram(t, dear, "0 1\n")
}

// quiet walks through so many objects that the collector would come by.
const quiet = `
import gc, types
from memdiag import _holders

many = [[i, [i]] for i in range(300)]
more = [[[i] for i in range(300)] for _ in range(100)]
agent = types.SimpleNamespace(step=0, stepping=False, jax=types.SimpleNamespace(array=lambda: None), ticker=types.SimpleNamespace(thread=None, acts=lambda: False))
search = _holders.Search(agent, types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set()))
collected = []
gc.callbacks.append(lambda phase, info: collected.append(phase))
def collections():
    gc.collect(0)
    collected.clear()
    search.walk({}, {}, {("no line",): 1}, 10)
    n = sum(phase == "start" for phase in collected)
    return n < 10, gc.isenabled()
print(collections())
gc.disable()
print(collections())
`

func TestAWalkIsNotHeldUpByTheCollector(t *testing.T) {
	t.Parallel()
	agentProgram(t, quiet, "(True, True)\n(True, False)\n")
}

// slowly has a heap of a training that grows by so much each step, seen each quarter of the steps as
// expensive snapshots are, and tells at which step tracing begins.
const slowly = `
import types
from memdiag import _heap

def begins(grow, made=lambda step: step, graph=False):
    holders = types.SimpleNamespace(graphs=types.SimpleNamespace(grow=lambda: graph))
    torch = types.SimpleNamespace(module=True, cuda=None, bytes=0, count=0)
    agent = types.SimpleNamespace(settings={}, number=0, child=False, step=16, stepping=True, spent=0, holders=holders, torch=torch, own=types.SimpleNamespace(blocks=0, collects=False))
    heap = _heap.Heap(agent)
    while agent.step < 100_000 and not heap.rises:
        agent.own.entry = made(agent.step), None
        heap.look((100 << 20) + grow(agent.step))
        agent.step = max(agent.step + 8, agent.step * 5 // 4)
    return agent.step if heap.rises else None
print(begins(lambda step: 1024 * step) < 2000)
print(begins(lambda step: 0, lambda step: 15 * step) < 2000, begins(lambda step: 0, lambda step: 6 * step))
print(begins(lambda step: 100 * step), begins(lambda step: 1024 * min(step, 300)), begins(lambda step: step % 7 << 16))
print(begins(lambda step: 1024 * step, lambda step: step // 10), begins(lambda step: 1024 * step, graph=True))
`

func TestAHeapThatGrowsSlowlyIsTracedInTheEnd(t *testing.T) {
	t.Parallel()
	agentProgram(t, slowly, "True\nTrue None\nNone None None\nNone None\n")
}

// wavering goes up and down between snapshots, and twice rises or falls for good.
const wavering = `
from memdiag import _windows

def shared(totals):
    level, dips, out = totals[0], [], []
    for now in totals[1:]:
        by = _windows.lasting(now, level, dips)
        level += by
        out.append(by)
    return out
print(shared([100, 110, 100, 110, 100, 110, 110]))
print(shared([100, 90, 120, 110, 130, 140]))
print(shared([100, 60, 50, 55, 55, 70]))
`

func TestWhatFallsAndRisesAgainIsNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, wavering, "[10, 0, 0, 0, 0, 0]\n[0, 20, 0, 10, 10]\n[0, 0, -40, 0, 10]\n")
}

// cached frees blocks of all the sizes that glibc then caches, which it counts as in use.
const cached = windowsByHand + `from memdiag._own import fill_caches, held

def used():
    return held(agent.heap.malloc())
used()
fill_caches()
before = used()
made = [bytes(size) for size in range(480, 990) for _ in range(2)]
del made
print(abs(used() - before) < 3000)
`

func TestWhatTheAgentFreesIsCachedAlready(t *testing.T) {
	t.Parallel()
	agentProgram(t, cached, "True\n")
}

// tracedAllAlong has a heap that is not traced, and then one that is, as was asked for.
const tracedAllAlong = windowsByHand + `heap = _heap.Heap(agent)
said = []
agent.note = said.append
for heap.tracing in False, True:
    heap.finish()
    print(len(said), *said)
    heap.tracing = False
`

func TestWhatTracingAllAlongCostsIsTold(t *testing.T) {
	t.Parallel()
	agentProgram(t, tracedAllAlong, "0\n1 Python's heap was traced during the whole run (--python-heap on); Python code may have been many times slower\n")
}

// deep has stacks as a library makes them far below a line of the program's.
const deepStacks = `
from memdiag import _windows

own, library = ("/home/me/train.py", 27), ("/venv/lib/python3.11/site-packages/matplotlib/axis.py", 1)
def stack(below, frames):
    return (*[(library[0], n) for n in range(below, 0, -1)], own, ("/home/me/train.py", 39))[:frames]
def grown(*stacks):
    return {s: ([3, 300, 0, 0], [0, 0, 0, 0], 0, 0) for s in stacks}
print([len(_windows.shortened(stack(n, 48))) for n in (0, 3, 14, 15, 40)], len(_windows.shortened(stack(60, 48))))
print(_windows.shortened(stack(40, 48)) == stack(2, 48), _windows.shortened(stack(30, 48)) == _windows.shortened(stack(40, 48)))
made = (("<string>", 1), *stack(20, 15))  # a named tuple, below a library's lines
print(*(_windows.cut_off(grown(*stacks), 16) for stacks in (
    [stack(20, 16), stack(3, 16), stack(4, 16)], [made, stack(3, 16)], [stack(20, 16), *(stack(n, 16) for n in range(3, 8))], [])))
print(len(_windows.shortened((("<string>", 1), *stack(40, 47)))))
`

func TestStacksThatAreDeepKeepTheProgramsLine(t *testing.T) {
	t.Parallel()
	agentProgram(t, deepStacks, "[2, 5, 16, 4, 4] 16\nTrue True\nTrue True False False\n4\n")
}

// unused has a library import PyTorch, of which no tensor is ever made, and then one is.
const unused = `
import sys, types
from memdiag import _heap, _ticks

torch = types.SimpleNamespace(module=object(), cuda=None, seen=lambda: bool(made), since_import=0.0, works=False)
agent = types.SimpleNamespace(settings={}, number=0, child=False, fixed=0, step=0, stepping=False, seconds=0, explicit=False, torch=torch, elapsed=lambda: 9.0)
made, sys.modules["torch"] = [], torch
heap, ticker = _heap.Heap(agent), _ticks.Ticker(agent)
print(heap.windowed(), [ticker.wanted(waited, 0.0, awaited) for awaited in (False, True) for waited in (1, 3, 6)])
made.append(1)
print(heap.windowed(), [ticker.wanted(waited, 0.0, awaited) for awaited in (False, True) for waited in (1, 3, 6)])
made.clear()
print(heap.windowed())
`

func TestAPyTorchThatNobodyUsesIsNone(t *testing.T) {
	t.Parallel()
	agentProgram(t, unused, "True [True, True, True, False, False, True]\nFalse [False, True, True, False, True, True]\nFalse\n")
}

// pursued has censuses with more and more storages that have no stack.
const pursued = `
import types
from memdiag import _torch

t = _torch.Torch(types.SimpleNamespace())
for turn, count in ((10, 5), (20, 7), (40, 3), (140, 13), (150, 14), (200, 4), (300, 11), (400, 12)):
    t.turn = turn
    t.pursue(count)
    print(t.pursued, end=" ")
    t.pursued = 0
`

// What is made now and then, several at once, is met in so many steps in a row as eight of them take.
func TestWhatHasNoStackIsWatchedFor(t *testing.T) {
	t.Parallel()
	agentProgram(t, pursued, "0 0 0 104 0 0 0 260 ")
}

// bursts keeps a number at each step, and at some, where no window is open, a thousand objects.
const bursts = `
import types
from memdiag import _heap, _own, _windows

agent = types.SimpleNamespace(settings={}, number=0, child=False, fixed=0, torch=types.SimpleNamespace(module=None, cuda=None, bytes=0, sweep=lambda: None), elapsed=lambda: 100.0 + agent.step, programs=lambda: 100.0, spent=0.0, step=0, stepping=False, ticker=types.SimpleNamespace(thread=None, interval=1.0, acts=lambda: False), holders=types.SimpleNamespace(look=lambda lines: 0))
agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
def run(burst):
    windows, losses, figures = _windows.Windows(agent, lambda: None), [], []
    windows.wanted = False
    def step():
        agent.step, agent.stepping = agent.step + 1, True
        losses.append(object())
    def settle():
        with agent.own:
            windows.settle()
    for _ in range(_windows.ENOUGH):
        windows.opened, windows.plain, windows.limit, windows.stride = agent.step, 1e9, 1e9, 1
        windows.start()
        for _ in range(_windows.LOOKS):
            step()
            windows.look()
    settle()
    for i in range(400):
        step()
        if i % 20 == 19:
            figures.append([object() for _ in range(burst)])
            settle()
    told = sum(count for size, count, stack in windows.grown())
    return 0.8 < told / len(losses) / (1 + burst / 20) < 1.2, told < 15 * len(losses), windows.silent()
print(run(0), run(20), run(1000))
`

// What grows between windows by far more than in them is made by lines that they did not see.
func TestLinesTakeNoMoreThanWindowsSaw(t *testing.T) {
	t.Parallel()
	agentProgram(t, bursts, "(True, True, False) (True, True, False) (False, True, True)\n")
}

// attached has a program with collectives in a Python that may crash as tracing ends, and in one that may not.
const attached = `
import sys, types
from memdiag import _windows

sys.modules["torch.distributed"] = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: ranks)
for _windows.MENDED in False, True:
    for ranks in False, True:
        notes = []
        agent = types.SimpleNamespace(settings={}, number=0, torch=types.SimpleNamespace(cuda=None, bytes=0), heap=types.SimpleNamespace(wanted="auto"), note=notes.append, elapsed=lambda: 9.0)
        print(_windows.Windows(agent, lambda: None).foreign(), agent.heap.wanted, len(notes), end="; ")
`

func TestTheHeapIsNotTracedWhereItsEndMayCrash(t *testing.T) {
	t.Parallel()
	agentProgram(t, attached, "False auto 0; True off 1; False auto 0; False auto 0; ")
}

// TestAWindowEndsWhileTheProgramWaits: steps that take little of the processor are no short ones. A window was to last so much of its
// time, and never ended.
func TestAWindowEndsWhileTheProgramWaits(t *testing.T) {
	t.Parallel()
	r := runOf(t, record.Options{}, python(t), script(t, `
import time
import memdiag
kept = []
for step in range(1, 251):
    kept.append(bytearray(b"x") * (1 << 18))
    time.sleep(0.02)
    memdiag.mark(step=step)
`))
	run, err := files.OpenRun(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if last := run.Snapshots[len(run.Snapshots)-1].Mark.Step; last < 150 {
		t.Errorf("the last snapshot is of step %d of 250", last)
	}
}

// waits has a thread of the program's that waits while the agent works, and then one that works, too.
const waits = windowsByHand + `import threading, time
go, stop, done, made, kept = threading.Event(), threading.Event(), threading.Event(), [], []
def work():
    go.wait()
    made.extend([object() for _ in range(3000)])
    done.set()
    stop.wait()
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
with agent.own:
    pass  # which imports what it needs
def own(f):
    before = agent.own.blocks
    with agent.own:
        f()
    return agent.own.blocks - before
print(1900 < own(lambda: kept.extend([object() for _ in range(2000)])) < 2200)
print(own(lambda: (go.set(), done.wait(), time.sleep(0.05))))
`

// Beside a thread that only waited all that the recorder took was the program's growth: in each worker of a loader.
func TestWhatTheRecorderTakesIsKnownBesideThreadsThatWait(t *testing.T) {
	t.Parallel()
	agentProgram(t, waits, "True\n0\n")
}

// busy has threads that never wait, so that nothing is known of what the agent takes but what it keeps of its windows.
const busy = windowsByHand + `import sys
from memdiag import _lost
agent.own.threads, _lost.LOSES = object, False
def level():
    with agent.own:
        return windows.now()[0]
text, kept = "\n".join("kept.append([i] * 3)" for _ in range(100)), []
programs = [compile(text, "program%d.py" % n, "exec") for n in range(_windows.RECENT + 1)]
level()  # which imports what it needs
before = level()
for code in programs:
    windows.look()
    for i in range(_windows.LOOKS):
        exec(code)
        windows.look()
more = level() - before - 2 * len(kept)
print(windows.number, more < 500 or more, agent.own.bytes == sum(map(sys.getsizeof, windows.recent)))
`

// In a program whose threads never rest, what the agent kept of its windows was the program's growth: 5,000 blocks in one window.
func TestWhatWindowsFoundIsKnownBesideThreadsThatWork(t *testing.T) {
	t.Parallel()
	agentProgram(t, busy, "9 True True\n")
}
