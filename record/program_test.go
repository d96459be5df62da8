//go:build unix

package record_test

import (
	"testing"

	"github.com/memdiag/memdiag/record"
)

// late has handlers of signals that raise errors, in a call of the agent's, in a walk and in a census.
const late = `
import functools, gc, signal, types
from memdiag import _census, _walk
from memdiag._agent import Agent

class Late(Exception): pass
def function(*args): raise Late("function")
class Object:
    def method(self, *args): raise Late("method")
    def __call__(self, *args): raise Late("object")
def interrupt(*args):
    signal.raise_signal(signal.SIGALRM)
    while True: pass
class Tensor:
    is_cpu = property(interrupt)
tensors = [Tensor()]
torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Tensor))
def walk():
    walk = _walk.Walk(None, {1: "site"}, {})
    walk.visit = interrupt
    walk.run()
a = Agent({"dir": ".", "rank": -1})
for handler in function, Object().method, Object(), functools.partial(function, 1):
    signal.signal(signal.SIGALRM, handler)
    for f in interrupt, walk, functools.partial(_census.handled, torch):
        try:
            print(a.guarded("step", f))
        except Late as e:
            print(e, end=" ")
print(a.notes)
a.guarded("step", lambda: 1 / 0)
print(a.errors)
`

func TestAnErrorOfTheProgramsHandlerReachesTheProgram(t *testing.T) {
	t.Parallel()
	agentProgram(t, late, "function function function method method method object object object function function function {}\n1\n")
}

// interrupted gets Ctrl-C while the agent works, with Python's handler and with one of its own.
const interrupted = `
import os, signal, time, traceback
from memdiag._agent import Agent

a = Agent({"dir": ".", "rank": -1})
def look():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    print("looked", end=" ")
def step():
    a.guarded("step", look)
    time.sleep(60)
def handle(*_):
    print("handled")
    raise OSError
for _ in range(2):
    try:
        step()
    except (KeyboardInterrupt, OSError) as e:
        print([f.name for f in traceback.extract_tb(e.__traceback__)])
    signal.signal(signal.SIGINT, handle)
print(a.notes)
`

// An interrupt within the agent's work printed a dozen frames of the agent's.
func TestAnInterruptReachesTheProgramOnceTheAgentIsDone(t *testing.T) {
	t.Parallel()
	agentProgram(t, interrupted, "looked ['<module>', 'step']\nlooked handled\n['<module>', 'step', 'handle']\n{}\n")
}

// deep is asked for snapshots near the limit of recursion.
const deep = `
import sys
from memdiag import _ticks
from memdiag._agent import Agent

a = Agent({"dir": ".", "rank": -1})
a.ticker = ticker = _ticks.Ticker(a)
def recurse(n):
    if n:
        return recurse(n - 1)
    ticker.asked = lambda importing: recurse(50)
    return ticker.handle(0, sys._getframe())
for left in range(8, 60):
    recurse(sys.getrecursionlimit() - left)
print(a.errors)
`

func TestAProgramNearTheLimitOfRecursionGoesOn(t *testing.T) {
	t.Parallel()
	agentProgram(t, deep, "0\n")
}

// traces begins tracemalloc in a window, and without its module.
const traces = `
import _tracemalloc, sys, types
from memdiag import _heap

torch = types.SimpleNamespace(module=None, cuda=None, bytes=0)
blind = []
agent = types.SimpleNamespace(settings={}, number=0, step=1, stepping=True, torch=torch, elapsed=lambda: 100, own=types.SimpleNamespace(bytes=0), blind=lambda *what: blind.append(what))
agent.heap = heap = _heap.Heap(agent)
_tracemalloc.start(3)
heap.windows.open()
heap.windows.stop()
print(_tracemalloc.is_tracing(), len(blind))
_tracemalloc.stop()

heap.windows.open()
print(_tracemalloc.is_tracing())
sys.meta_path.insert(0, _heap.Finder(agent))
import tracemalloc
print(tracemalloc.is_tracing())
tracemalloc.start(25)
kept = [[] for _ in range(9)]
heap.windows.stop()
print(tracemalloc.get_traceback_limit(), len(tracemalloc.take_snapshot().traces) > 0)
`

func TestAProgramHasTracemallocForItself(t *testing.T) {
	t.Parallel()
	agentProgram(t, traces, "True 1\nTrue\nFalse\n25 True\n")
}

// interpreters has a program that may make subinterpreters from some moment on.
const interpreters = `
import _tracemalloc, sys, types
from memdiag import _heap

for python_heap in "auto", "on", "off":
    blind = []
    torch = types.SimpleNamespace(module=None, cuda=None, bytes=0, recalibrate=lambda: None)
    agent = types.SimpleNamespace(settings={"python_heap": python_heap}, number=0, step=1, stepping=True, fixed=False, torch=torch, elapsed=lambda: 100, own=types.SimpleNamespace(bytes=0), blind=lambda *what: blind.append(what))
    agent.heap = heap = _heap.Heap(agent)
    heap.start()
    if heap.windowed():
        heap.windows.open()
    print(_tracemalloc.is_tracing(), end=" ")
    for name in _heap.INTERPRETERS:
        _heap.Finder(agent).find_spec(name)
    print(_tracemalloc.is_tracing(), heap.windowed(), len(blind), end="; ")
`

func TestNothingIsTracedBesideSubinterpreters(t *testing.T) {
	t.Parallel()
	agentProgram(t, interpreters, "True False False 1; True False False 1; False False False 0; ")
}

// closes closes all files, as one that becomes a daemon does, and opens its own.
const closes = `
import os, sys, time, types
from memdiag._counters import Counters

counters = Counters(types.SimpleNamespace(elapsed=lambda: 9, now=time.time), sys.argv[0] + ".series", types.SimpleNamespace(name="cuda", count=lambda: 1, stats=lambda device: {}))
os.closerange(3, 64)
own = [os.open(sys.argv[0] + "%d" % i, os.O_CREAT | os.O_RDWR) for i in range(3)]
counters.count(1, "", {0})
counters.write()
print([os.fstat(f).st_size for f in own], os.stat(counters.path).st_size > 0)
`

func TestCountersAreWrittenIntoNoFileOfTheProgram(t *testing.T) {
	t.Parallel()
	agentProgram(t, closes, "[0, 0, 0] True\n")
}

// inner makes another interpreter in its process.
const inner = `
import sys
try:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
except ImportError:
    import _interpreters as interpreters
    run = interpreters.exec
import memdiag
which = interpreters.create()
run(which, "import memdiag; assert memdiag._running is None")
interpreters.destroy(which)
print(memdiag._running is not None)
`

func TestAnInterpreterInsideTheProgramHasNoAgent(t *testing.T) {
	t.Parallel()
	r := runOf(t, record.Options{}, python(t), script(t, inner))
	if r.ExitCode != 0 || r.stdout != "True\n" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}
