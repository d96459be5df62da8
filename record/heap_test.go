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

// windows opens some by hand around a program's work, and then has it work on without one.
const windows = `
import _tracemalloc, types
from memdiag import _heap, _own, _windows

agent = types.SimpleNamespace(settings={}, number=0, child=False, step=0, stepping=False, spent=0.0, elapsed=lambda: 100.0, fixed=0,
    torch=types.SimpleNamespace(module=None, cuda=None, bytes=0, sweep=lambda: None), ticker=types.SimpleNamespace(interval=1.0, thread=None, acts=lambda: False), holders=types.SimpleNamespace(look=lambda lines: 0.0))
agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
heap, kept, scratch = agent.heap, [], []
def settle(windows):
    with agent.own:
        windows.settle()
def work(n, keep):
    for i in range(n):
        scratch[:] = [[j, float(j)] for j in range(i % 7 * 10)]
        if keep:
            kept.append((i, [float(i)]))
def run(keep):
    kept.clear()
    windows = _windows.Windows(agent, heap.malloc)
    for _ in range(_windows.ENOUGH):
        windows.look()
        for _ in range(_windows.LOOKS):
            work(100, keep)
            windows.look()
        print(_tracemalloc.is_tracing(), end=" ")
    settle(windows)
    work(5000, keep)
    settle(windows)
    rows = [(stack[0][1] if stack else None, count) for size, count, stack in windows.grown() if size > 1000]
    return rows and {line for line, _ in rows} == {16} and 23_000 <= sum(n for _, n in rows) <= 26_000 or rows
def larger(sizes):
    windows, buffer, small = _windows.Windows(agent, heap.malloc), None, [None] * 4000
    for i in range(_windows.RECENT):
        windows.look()
        for j in range(_windows.LOOKS):
            at = 100 * (_windows.LOOKS * i + j)
            buffer, small[at : at + 100] = bytes(next(sizes)), [object() for _ in range(100)]
            windows.look()
    settle(windows)
    buffer = bytes(1_800_000)
    settle(windows)
    return [count > 0 for size, count, stack in windows.grown() if size > 800_000]
def early(keep):
    windows = _windows.Windows(agent, heap.malloc)
    settle(windows)
    work(5000, keep)
    settle(windows)
    silent, agent.elapsed = windows.silent(), lambda: 201.0
    settle(windows)
    later, agent.elapsed = windows.silent(), lambda: 100.0
    return silent, later
print(run(True))
print(run(False))
print(early(True), early(False))
broken = _windows.Windows(agent, heap.malloc)
broken.look()
broken.looks = None
try:
    broken.look()
except AttributeError:
    print(_tracemalloc.is_tracing(), broken.due)
import itertools, random
print(larger(itertools.count(20_000, 10_000)), larger(iter([random.Random(3).randrange(20_000, 30_000) for _ in range(99)])), larger(itertools.cycle([20_000, 20_100])))
`

func TestGrowthBetweenWindowsIsToldByTheirLines(t *testing.T) {
	t.Parallel()
	agentProgram(t, windows, "False False False True\nFalse False False []\n(True, False) (False, False)\nFalse None\n[True] [] []\n")
}

// freed makes tuples and lets go of them, of which Python keeps some.
const freed = `
import gc, sys, types
from memdiag import _heap, _own, _windows

agent = types.SimpleNamespace(settings={}, number=0, child=False, fixed=0, torch=types.SimpleNamespace(cuda=None, bytes=0, sweep=lambda: None), elapsed=lambda: 100.0, spent=0.0, step=0, stepping=False, ticker=types.SimpleNamespace(thread=None, interval=1.0, acts=lambda: False))
agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
def windows():
    gc.collect()
    return _windows.Windows(agent, lambda: None)
def level(windows):
    with agent.own:
        windows.settle()
    return windows.level[0]
w = windows()
before, raw = level(w), sys.getallocatedblocks()
for length in (2, 8, 19):
    made = [(None,) * length for _ in range(1500)]
    made = [tuple(list(t)) for t in made]
del made, length
print(sys.getallocatedblocks() - raw > 3000, abs(level(w) - before) < 300)
kept = [tuple([i, i]) for i in range(1000)]
print(900 < level(w) - before < 1900)

agent.torch.module, agent.elapsed = None, lambda: 100.0
agent.holders = types.SimpleNamespace(look=lambda lines: 0)
w = windows()
before = level(w)
for _ in range(_windows.LOOKS + 1):
    w.look()
    kept += [object() for _ in range(1000)]
print(4700 < level(w) - before < 5300)
`

func TestFreeTuplesThatPythonKeepsAreNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, freed, "True True\nTrue\nTrue\n")
}

// reused has free lists and dictionaries, and makes others while Python's heap is traced.
const reused = windowsByHand + `
import _tracemalloc
lists, dicts = [[] for _ in range(200)], [{} for _ in range(200)]
del lists, dicts
windows.start()
kept = [[[1], {2: 3}] for _ in range(5)]
print(all(_tracemalloc._get_object_traceback(obj) for pair in kept for obj in (pair, *pair)))
windows.stop()
print(windows.free)
`

// What a list or dictionary was made of may be free from before the window: its line was seen by the list's table alone, and nobody held it.
func TestAWindowTellsWhereListsAreMade(t *testing.T) {
	t.Parallel()
	agentProgram(t, reused, "True\n()\n")
}

// overdrawn has a step that takes too long while it is traced, and growth of which one line made next to nothing.
const overdrawn = windowsByHand + `import _tracemalloc
agent.programs, agent.canary = lambda: 1.0, None
windows.opened, windows.limit, windows.plain, windows.since = 1, 0.1, 0.01, 99.0
windows.start()
for agent.elapsed in (lambda: 99.1), (lambda: 99.3):
    windows.end_overdrawn()
    print(_tracemalloc.is_tracing(), end=" ")
windows.boundary(2)
print(windows.opened, windows.number, windows.looks)
windows.share(0, 10_000, {"cache": [995, 9950, 0, 0], "noise": [5, 50, 0, 0]})
print(*windows.lines)
`

// unplaced has malloc's memory grow, and some of it go, while no line, or a line of small objects, is known to grow.
const unplaced = windowsByHand + `
for change, growing in (200_000, {}), (200_000, {"small": [9, 900, 0, 0]}), (-200_000, {}), (500_000, {"large": [0, 0, 1, 500_000]}):
    windows.share(2, change, growing)
    print(windows.outgrows(), agent.heap.outgrows(), end=" ")
agent.heap.windows = windows
windows.share(2, 300_000, {})
print(agent.heap.outgrows())
windows.lines = {"buffer": [0.2, 90, 0.1, 500_000], "line": [9, 900, 0, 0], "half a block": [0.3, 30, 0, 0], (): [9, 900, 0, 0]}
print(sorted(str(stack) for _, _, stack in windows.grown()))
for levels in ([9000 * i for i in range(10)], [0] * 8 + [9000, 80_000], [0] * 6 + [80_000] * 4, [0, 80_000]):
    windows.unknown = [((i + 1) * 100 / len(levels), n, 0) for i, n in enumerate(levels)]
    print(windows.silent(), end=" ")
`

func TestMemoryWithoutALineHasContainersBeFollowed(t *testing.T) {
	t.Parallel()
	agentProgram(t, unplaced, "False False True False False False False False True\n['buffer', 'line']\nTrue False False True ")
}

func TestAStepThatIsDearToTraceIsNotTracedToItsEnd(t *testing.T) {
	t.Parallel()
	agentProgram(t, overdrawn, "True False None 0 []\ncache\n")
}

// cyclic makes garbage that the collector has not found yet, and then as much that stays.
const cyclic = windowsByHand + `import gc
gc.set_threshold(1_000_000)
kept = []
def make(n):
    for _ in range(n):
        cycle = []
        cycle.append(cycle)
        yield cycle
def rises(by):
    before, agent.own.entry = windows.highest[0], None
    with agent.own:
        windows.settle()
    return windows.highest[0] - before >= by
with agent.own:
    windows.settle()
for _ in make(5000):
    pass
print(rises(4000))
kept += make(10_000)
print(rises(4000))
`

func TestGarbageIsNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, cyclic, "False\nTrue\n")
}

// windowsByHand begins a program that opens windows and looks into them itself.
const windowsByHand = `
import types
from memdiag import _heap, _own, _windows

agent = types.SimpleNamespace(settings={}, number=0, child=False, step=0, stepping=False, spent=0.0, elapsed=lambda: 100.0, fixed=0,
    torch=types.SimpleNamespace(module=None, cuda=None, bytes=0, sweep=lambda: None), ticker=types.SimpleNamespace(interval=1.0, thread=None, acts=lambda: False), holders=types.SimpleNamespace(look=lambda lines: 0.0))
agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
windows = _windows.Windows(agent, agent.heap.malloc)
`

// renewed looks at what is recreated in each round of a loop while that is half made.
const renewed = windowsByHand + `kept, scratch = [], []
def work(many, more):
    scratch[:] = [float(i) for i in range(many)]
    for _ in range(more):
        kept.append(bytearray(100_000))
for looks in (((0, 0), (1900, 1), (3636, 0), (2098, 1)), ((1649, 0), (1900, 1), (2099, 1), (2774, 0)), ((1900, 1), (2099, 0), (2098, 1), (3788, 1))):
    windows.look()
    for many, more in looks:
        work(many, more)
        windows.look()
print([stack[0][1] for stack in windows.growing()])
`

func TestWhatIsMadeAnewInEachRoundDoesNotGrow(t *testing.T) {
	t.Parallel()
	agentProgram(t, renewed, "[13]\n")
}

// terms keeps three of four arrays that a line makes, of which the other is larger.
const terms = windowsByHand + `kept, terms = [], []
def work(i):
    *first, second = map(bytearray, [30_000] * 3 + [900_000 * (i * 7 % 4)])
    kept.extend(first)
    terms[:] = [second]
for i in range(15):
    if i % 5:
        work(i)
    windows.look()
print({stack[0][1]: g[3] // 30_000 for stack, g in windows.growing().items() if g[3]})
`

func TestOfOneLineWhatStaysIsToldByItsSize(t *testing.T) {
	t.Parallel()
	agentProgram(t, terms, "{11: 9}\n")
}

// batches has a batch of each kind replaced once in a window, and a line that keeps something.
const batches = windowsByHand + `kept, batch, rows = [], bytearray(300_000), [[i] for i in range(2000)]
def work(i):
    global batch, rows
    kept.append(bytearray(20_000))
    if i == 2:
        batch = bytearray(300_000)
        rows = [[i] for i in range(2000)]
for _ in range(_windows.ENOUGH):
    windows.look()
    for i in range(_windows.LOOKS):
        work(i)
        windows.look()
print([stack[0][1] for stack, g in windows.growing().items() if g[0] > 100 or g[3] > 50_000])
`

// TestWhatIsReplacedOnceInAWindowDoesNotGrow: where a step is longer than a window, the line of its batch was said to leak what another
// line retains.
func TestWhatIsReplacedOnceInAWindowDoesNotGrow(t *testing.T) {
	t.Parallel()
	agentProgram(t, batches, "[12]\n")
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

// stepwise has steps of 10 ms, which take so many times as long while Python's heap is traced, and keeps something of each.
const stepwise = windowsByHand + `clock, kept = [0.0], []
agent.programs = agent.elapsed = lambda: clock[0]
def run(slow):
    windows, agent.stepping = _windows.Windows(agent, agent.heap.malloc), True
    for agent.step in range(1, 5001):
        clock[0] += 0.01 * (slow if windows.began else 1)
        kept.append([agent.step])
        windows.wanted = windows.wanted or agent.step % 50 == 0
        windows.boundary(agent.step)
    windows.stop()
    took, clock[0] = clock[0] - 50, 0.0
    assert took <= 1.1 * (_windows.STEPS_ALLOWANCE + _windows.STEPS_SHARE * 50), took
    return windows.number >= _windows.ENOUGH and 15 in [stack[0][1] for stack in windows.growing()]
print(run(1.01), run(2.0), run(6.0), run(12.0))
`

func TestTracingCostsNoMoreThanItMayHoweverSlowItIs(t *testing.T) {
	t.Parallel()
	agentProgram(t, stepwise, "True True True True\n")
}

// watched has as much after four windows as before them, and the agent's own work keeps something meanwhile.
const watched = windowsByHand + `scratch, agents = [], []
def work():
    scratch[:] = [[float(i), "row %d" % i, [None] * 99] for i in range(2000)]
def level():
    with agent.own:
        windows.settle()
        agents.append([bytes(1000) for _ in range(300)])
    return windows.level
work()
before = level()
for _ in range(4):
    windows.look()
    for _ in range(_windows.LOOKS):
        work()
        windows.look()
    level()
after = level()
print(windows.number, after[0] - before[0] < 2000, after[1] - before[1] < 200_000)
kept = [bytes(1000) for _ in range(600)]
print(level()[1] - after[1] > 500_000)
levels = []
many = compile("\n".join("scratch.append([i] * %d)" % i for i in range(100)), __file__, "exec")
for i in range(3 * _windows.RECENT):
    windows.look()
    for _ in range(_windows.LOOKS):
        scratch.clear()
        exec(many)
        windows.look()
    levels.append(level()[0])
print(abs(levels[-1] - levels[_windows.RECENT]) < 4 * _windows.BLOCKS)
`

// What windows find comes and goes with them: it was counted as the program's when it came, and as the recorder's when it went.
func TestWhatTheRecorderTakesIsNoGrowth(t *testing.T) {
	t.Parallel()
	agentProgram(t, watched, "4 True True\nTrue\nTrue\n")
}

// replaced fills a buffer, and has what comes then take the place of what is there, while something else grows a little.
const replaced = windowsByHand + `import random
draw = random.Random(0)
def run(size, little):
    windows, buffer, other = _windows.Windows(agent, agent.heap.malloc), [], []
    agent.step, agent.stepping = 0, True
    def work(steps):
        for _ in range(steps):
            agent.step += 1
            for _ in range(20):
                item = object()
                if len(buffer) < size:
                    buffer.append(item)
                else:
                    buffer[draw.randrange(size)] = item
    def settle():
        with agent.own:
            windows.settle()
    work(200)
    for _ in range(30):
        windows.opened, windows.plain, windows.limit, windows.stride = agent.step, 1e9, 1e9, 1
        windows.start()
        for _ in range(_windows.LOOKS):
            work(1)
            windows.look()
        settle()
        other += [object() for _ in range(little)]
        work(100)
        settle()
    return sum(count for _, count, stack in windows.grown() if stack), len(buffer)
agent.programs = lambda: 1.0
told, _ = run(2000, 50)
print(told < 500, end=" ")
told, all = run(1_000_000, 50)
print(0.7 < told / all < 1.2)
`

func TestWhatTakesThePlaceOfOtherThingsDoesNotGrow(t *testing.T) {
	t.Parallel()
	agentProgram(t, replaced, "True True\n")
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

// pixels are kept by a list, whose own table is all that Python has of them beside small handles.
const pixels = windowsByHand + `agent.heap.garbage_goes = lambda: False
windows.grows = {"list": [100, 6400, 1, 800]}
windows.recent.extend([{}] * 3)
windows.spans.extend([0.1] * 3)
windows.levels.append((1.0, False, (1000, 100_000)))
windows.level = windows.highest = 1000, 100_000
windows.ask = lambda: None
for blocks, held in (11_000, 100_000_000), (21_000, 100_080_000):
    windows.now = lambda: (blocks, held)
    windows.settle()
    print(*map(round, windows.lines["list"]), *map(round, windows.beyond))
`

func TestBytesOfNativeCodeAreNoLines(t *testing.T) {
	t.Parallel()
	agentProgram(t, pixels, "10000 640000 330 264000 0 0\n20000 1280000 330 264211 0 0\n")
}

// turnover has a cache of which each window sees what comes and not what goes, beside what stays of no known line.
const turnover = windowsByHand + `windows.lines = {(): [5000.0, 400_000.0, 0.0, 0.0]}
growing = {"cache": [10, 1000, 0, 0]}
for _ in range(50):
    for change in 700, -300, -400:
        windows.share(0, change, growing)
print({stack: round(entry[0]) for stack, entry in windows.lines.items()})
windows.share(0, 500, growing)
windows.share(0, -2500, growing)
print({stack: [round(n) for n in entry[:2]] for stack, entry in windows.lines.items()})
`

func TestWhatComesAndGoesIsTakenFromWhereItCame(t *testing.T) {
	t.Parallel()
	agentProgram(t, turnover, "{(): 5000, 'cache': 0}\n{(): [3000, 240000], 'cache': [0, 0]}\n")
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
agent.own.threads, windows.loses = object, False
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
