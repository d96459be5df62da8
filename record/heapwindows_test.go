//go:build unix

package record_test

import (
	"testing"
)

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

// Where malloc gives no figures, the recording ended with a division by zero if only small objects stayed.
func TestSmallObjectsAreToldWithoutFiguresOfMalloc(t *testing.T) {
	t.Parallel()
	agentProgram(t, windows+`
heap.mallinfo, kept = False, None
class Node:
    __slots__ = "next"
def work(n, keep):
    global kept
    for i in range(n):
        node = Node()
        node.next, kept = kept, node
windows = _windows.Windows(agent, heap.malloc)
for _ in range(_windows.ENOUGH):
    windows.look()
    for _ in range(_windows.LOOKS):
        work(100, True)
        windows.look()
settle(windows)
work(5000, True)
settle(windows)
print([(count > 4000, stack[0][1] - work.__code__.co_firstlineno) for size, count, stack in windows.grown() if stack])
`, "False False False True\nFalse False False []\n(True, False) (False, False)\nFalse None\n[True] [] []\n[(True, 3)]\n")
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
windows.share(0, 10_000, {"cache": [995, 9950, 0, 0, 0], "noise": [5, 50, 0, 0, 0]})
print(*windows.lines)
`

// unplaced has malloc's memory grow, and some of it go, while no line, or a line of small objects, is known to grow.
const unplaced = windowsByHand + `
for change, growing in (200_000, {}), (200_000, {"small": [9, 900, 0, 0, 0]}), (-200_000, {}), (500_000, {"large": [0, 0, 1, 500_000, 0]}):
    windows.share(2, change, growing)
    print(windows.outgrows(), agent.heap.outgrows(), end=" ")
agent.heap.windows = windows
windows.share(2, 300_000, {})
print(agent.heap.outgrows())
windows.lines = {"buffer": [0.2, 90, 0.1, 500_000], "line": [9, 900, 0, 0], "half a block": [0.3, 30, 0, 0], (): [9, 900, 0, 0]}
print(sorted(str(stack) for _, _, stack in windows.grown()))
for levels in ([9000 * i for i in range(10)], [0] * 8 + [9000, 80_000], [0] * 6 + [80_000] * 4, [0, 80_000]):
    windows.unknown = [((i + 1) * 100 / len(levels), 0, n, 0) for i, n in enumerate(levels)]
    print(windows.silent(), end=" ")
agent.stepping, agent.step = True, 100 # all within a hundredth of the time, after imports
windows.unknown = [(99 + i / 10, 10 * i + 10, 9000 * i, 0) for i in range(10)]
print(windows.silent(), end=" ")
`

func TestMemoryWithoutALineHasContainersBeFollowed(t *testing.T) {
	t.Parallel()
	agentProgram(t, unplaced, "False False True False False False False False True\n['buffer', 'line']\nTrue False False True True ")
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

// pixels are kept by a list, whose own table is all that Python has of them beside small handles.
const pixels = windowsByHand + `agent.heap.garbage_goes = lambda: False
windows.grows = {"list": [100, 6400, 1, 800, 0]}
windows.recent.extend([{}] * 3)
windows.spans.extend([0.1] * 3)
windows.levels.append((1.0, False, (1000, 100_000)))
windows.level = windows.highest = 1000, 100_000
windows.ask = lambda: None
for blocks, held in (11_000, 100_000_000), (21_000, 100_080_000):
    windows.now = lambda: (blocks, held)
    windows.settle()
    print(*map(round, windows.lines["list"]), *map(round, windows.beyond), round(windows.unplaced))
windows.grows, agent.torch.module = {}, True
windows.now = lambda: (21_000, 101_080_000)
windows.settle()
print(round(windows.unplaced))
`

func TestBytesOfNativeCodeAreNoLines(t *testing.T) {
	t.Parallel()
	agentProgram(t, pixels, "10000 640000 330 264000 0 0 99636000\n20000 1280000 330 264211 0 0 99715789\n100715789\n")
}

// turnover has a cache of which each window sees what comes and not what goes, beside what stays of no known line.
const turnover = windowsByHand + `windows.lines = {(): [5000.0, 400_000.0, 0.0, 0.0]}
growing = {"cache": [10, 1000, 0, 0, 0]}
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

// tooLarge has a line that keeps what is too large for Python's own allocator, whose count of blocks has these, too; then something else
// comes. A line of small objects may grow beside it.
const tooLarge = windowsByHand + `agent.stepping, agent.heap.garbage_goes = True, lambda: False
for beside in {}, {"small": [10, 320, 0, 0, 0]}:
    agent.step, level = 0, (0, 0)
    windows = _windows.Windows(agent, agent.heap.malloc)
    windows.size, windows.level, windows.now = 64, level, lambda: level
    windows.recent, windows.spans, windows.levels = [b""] * _windows.ENOUGH, [10], [(0, True, level)]
    windows.grows = {"line": [0, 0, 100, 500_000, 100], **beside}
    for blocks in [98 + bool(beside) * 12] * 9 + [200]:
        agent.step += 100
        level = level[0] + 10 * blocks, level[1] + 5_000_000 * (blocks < 200)
        windows.settle()
        if agent.step > 800:
            print({stack: [round(n) for n in entry] for stack, entry in windows.lines.items()})
`

// TestBlocksThatLinesHaveOfMallocAreToldOnce: a list of long strings was two leaks, its line and one of blocks without a stack.
func TestBlocksThatLinesHaveOfMallocAreToldOnce(t *testing.T) {
	t.Parallel()
	agentProgram(t, tooLarge, `{'line': [0, 0, 9000, 45000000], (): [0, 0, 0, 0]}
{'line': [0, 0, 9000, 45000000], (): [1820, 116480, 0, 0]}
{'line': [0, 0, 9000, 45000000], 'small': [900, 28800, 0, 0]}
{'line': [0, 0, 9000, 45000000], 'small': [1764, 56448, 0, 0]}
`)
}

// arrays has a line that keeps objects of malloc's, or NumPy's data, which Python's count of blocks lacks. Other blocks grow beside it.
const arrays = windowsByHand + `import marshal
from memdiag import _traces

agent.heap.garbage_goes, line = lambda: False, (("train.py", 7),)
for domain in 0, 389047:
    windows = _windows.Windows(agent, agent.heap.malloc)
    windows.size, windows.level, windows.now = 64, (0, 0), lambda: (500, 5_000_000)
    looks = [_traces.read([(domain, 50_000, line, 1)] * n) for n in range(_windows.LOOKS)]
    windows.recent, windows.spans, windows.levels = [marshal.dumps(_traces.changes(looks))] * _windows.ENOUGH, [10], [(0, False, (0, 0))]
    windows.grows = windows.growing()
    windows.settle()
    print({len(stack): [round(n) for n in entry] for stack, entry in windows.lines.items()})
`

func TestDataOutsidePythonsCountHidesNoBlocks(t *testing.T) {
	t.Parallel()
	agentProgram(t, arrays, "{1: [0, 0, 100, 5000000], 0: [400, 25600, 0, 0]}\n{1: [0, 0, 100, 5000000], 0: [500, 32000, 0, 0]}\n")
}

// strides has steps of 10 µs: half a second has thousands of them.
const strides = windowsByHand + `import time
agent.stepping, agent.programs = True, lambda: 1.0
for step in 12, 100, 2000:
    windows.wanted, windows.slow, windows.spent = True, 2.0, 0.0
    windows.without = 0, 1.0 - 1e-5 * step, time.monotonic(), time.process_time()
    windows.bound(step)
    print(windows.opened, windows.stride, end=" ")
    windows.stop()
`

// A window in a run of short steps lasted to its end, and one window tells no line.
func TestAWindowIsNoLongerThanAPartOfTheStepsSoFar(t *testing.T) {
	t.Parallel()
	agentProgram(t, strides, "12 1 100 6 2000 125 ")
}
