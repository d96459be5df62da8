//go:build unix

package record_test

import (
	"testing"

	"github.com/memdiag/memdiag/record"
)

// lets is what a function held, after a walk from within it, with the collector held back: a cycle
// that the walk left would keep it, and be told as a leak of the program's.
const lets = `
import gc, weakref
from memdiag import _walk

class Thing:
    pass

def step():
    own = Thing()
    _walk.Walk(None, {1: "all"}, {}).run()
    return weakref.ref(own)

gc.disable()
print("freed" if step()() is None else "kept")
`

func TestAWalkKeepsNothingOfTheFunctionsThatRun(t *testing.T) {
	t.Parallel()
	agentProgram(t, lets, "freed\n")
}

// wrapped looks for containers in a program that shares memory, which the agent follows by a function of its own in Python's module.
const wrapped = `
import memdiag, os, _posixshmem
from memdiag import _walk

class Thing:
    def __init__(self):
        self.kept = [[] for _ in range(50)]

thing = Thing()
for step in range(3):
    memdiag.mark(step=step)
walk = _walk.Walk(None, {1: "all"}, {})
walk.containers = []
walk.run()
paths = {node.path() for node, _ in walk.containers}
print(_posixshmem.shm_open.__code__.co_filename != __file__, "__main__.thing.kept" in paths, [path for path in paths if ".agent." in path])
`

func TestAWalkLeavesTheAgentOut(t *testing.T) {
	t.Parallel()
	r := runOf(t, record.Options{}, python(t), script(t, wrapped))
	if r.ExitCode != 0 || r.stdout != "True True []\n" {
		t.Errorf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
}

// switches has a thread of the program's switch the collector off during a walk of another one.
const switches = `
import gc, threading, types
from memdiag import _holders, _walk

def visit(self, obj, node):
    if not looked.is_set():
        walks.set()
        looked.wait()
def work():
    walks.wait()
    print(gc.isenabled())
    gc.disable()
    looked.set()
_walk.Walk.visit, walks, looked, kept = visit, threading.Event(), threading.Event(), [[]]
thread = threading.Thread(target=work)
thread.start()
agent = types.SimpleNamespace(jax=types.SimpleNamespace(array=lambda: None), ticker=types.SimpleNamespace(thread=None, acts=lambda: False))
_holders.Search(agent, types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set())).walk({1: "site"}, {}, {})
thread.join()
print(gc.isenabled())
`

func TestAWalkLeavesTheCollectorToThreadsThatRunMeanwhile(t *testing.T) {
	t.Parallel()
	agentProgram(t, switches, "True\nFalse\n")
}

// fills has a thread fill a tuple while a walk looks at what it found among all objects.
const fills = `
import threading
from memdiag import _walk

def items():
    begun.set()
    found.wait()
    yield 1
def fill():
    try:
        print(tuple(items()))
    finally:
        filled.set()
def frame(self, frame, node):
    found.set()
    filled.wait()
_walk.Walk.frame, begun, found, filled = frame, threading.Event(), threading.Event(), threading.Event()
thread = threading.Thread(target=fill)
thread.start()
begun.wait()
_walk.Walk(None, {1: "site"}, {}).suspended()
thread.join()
`

func TestAWalkHoldsNoTupleThatAThreadStillFills(t *testing.T) {
	t.Parallel()
	agentProgram(t, fills, "(1,)\n")
}

// asks has objects, classes, keys and a module that remember what they were asked.
const asks = `
import collections, importlib.util, sys, types
from memdiag import _names, _walk

asked = collections.Counter()
def answers(what, answer):
    return lambda *args: (asked.update([what]), answer(*args))[1]
class Meta(type):
    __getattribute__ = answers("class", type.__getattribute__)
    __hash__, __eq__ = answers("hash of a class", type.__hash__), answers("== of a class", type.__eq__)
class Unhashable(type):
    __eq__ = answers("== of an unhashable class", type.__eq__)
class Object(metaclass=Meta):
    __getattribute__ = answers("object", object.__getattribute__)
    __class__ = property(answers("__class__", lambda self: int))
    __dict__ = property(answers("__dict__", lambda self: {}))
class ndarray(metaclass=Unhashable):
    base = property(answers("base", lambda self: None))
class Key:
    __hash__, __eq__ = answers("hash of a key", lambda self: 1), answers("== of a key", lambda self, other: self is other)
class Name(str):
    __str__ = answers("name", str.__str__)
class List(list):
    __len__, __iter__ = answers("list", list.__len__), answers("list", list.__iter__)
class Dict(dict):
    __len__, __iter__, __getitem__ = answers("dict", dict.__len__), answers("dict", dict.__iter__), answers("dict", dict.__getitem__)
class Lazy(types.ModuleType):
    __getattribute__ = answers("module", types.ModuleType.__getattribute__)

sys.modules["lazy"] = Lazy("lazy")
thing = Object()
things = thing, ndarray(), [List([[1]])], Dict(a=[1]), {Key(): 1, Key(): [2]}, {Object: 1}, Object, ndarray
globals()[Name("named")] = last = [3]
asked.clear()
walk = _walk.Walk(None, {1: "site"}, {})
walk.run(60)
names = _names.Names()
print(names.of(__file__, answers.__code__.co_firstlineno), id(last) in walk.seen, walk.cut, dict(asked))
`

func TestAWalkAndNamesAskNothingOfTheProgram(t *testing.T) {
	t.Parallel()
	agentProgram(t, asks, "<module> True False {}\n")
}

// backs has tensors that tell when autograd's part of them is read, which our thread must not do.
const backs = `
import types
from memdiag import _holders

class Tensor:
    grad_fn, is_leaf = (property(lambda self, name=name: read.append(name)) for name in ("grad_fn", "is_leaf"))
    _backward_hooks = property(lambda self: None)
    def untyped_storage(self):
        raise NotImplementedError
kept = Tensor()
for ours in True, False:
    read = []
    agent = types.SimpleNamespace(jax=types.SimpleNamespace(array=lambda: None), ticker=types.SimpleNamespace(thread=None, acts=lambda: ours), step=1, stepping=True, heap=types.SimpleNamespace(windows=types.SimpleNamespace(depth=None), outgrows=lambda: False))
    _holders.Search(agent, types.SimpleNamespace(module=types.SimpleNamespace(Tensor=Tensor), table={}, saved="", handled=None, given=set())).walk({1: "site"}, {}, {})
    print(read)
`

func TestOurThreadLeavesAutogradAlone(t *testing.T) {
	t.Parallel()
	agentProgram(t, backs, "[]\n['grad_fn', 'is_leaf']\n")
}

// others has threads beside the one that asks whether autograd is at rest.
const others = `
import concurrent.futures, threading, time
from memdiag._autograd import rests

def beside(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    asleep.wait()
    answer = rests(None)
    awake.set()
    thread.join()
    return answer

def wait():
    asleep.set()
    awake.wait()

helper = {"wait": wait, "__name__": "tqdm._monitor"}
exec("def run(): wait()", helper)
for target in wait, helper["run"]:
    asleep, awake = threading.Event(), threading.Event()
    print(target.__name__, beside(target))
def ask():
    time.sleep(0.2)  # until it is waited for
    answers.append(rests(None))

answers = []
thread = threading.Thread(target=ask)
thread.start()
thread.join()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(time.sleep, [0.01, 0.01]))
    pool.submit(ask).result()
print("alone", rests(None), "of a thread that is waited for", *answers)
`

func TestAutogradRestsWhereNoOtherThreadMayCallIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, others, "wait False\nrun True\nalone True of a thread that is waited for True True\n")
}

// packs has a PyTorch that cannot tell what hooks have packed, and a program that pushes some.
const packs = `
import types
from memdiag import _torch

pushed = []
class SavedTensor:
    register_hooks = None
autograd = types.SimpleNamespace(SavedTensor=SavedTensor, _push_saved_tensors_default_hooks=lambda *hooks: pushed.append(hooks))
source = _torch.Torch(types.SimpleNamespace(replace=setattr))
source.saved = source.saved_names(types.SimpleNamespace(_C=types.SimpleNamespace(_autograd=autograd)))
print(repr(source.saved))
autograd._push_saved_tensors_default_hooks("pack", "unpack")
print(repr(source.saved), pushed)
`

func TestWhatHooksPackIsNotUnpacked(t *testing.T) {
	t.Parallel()
	agentProgram(t, packs, "'_saved_'\n'' [('pack', 'unpack')]\n")
}

// locals keeps what locals() returned, as Stable-Baselines3 does for its callbacks, while the agent reads a frame's locals.
const locals = `
import gc, sys, weakref
from memdiag import _length

class Kept:
    pass
def function(asks):
    mine, kept = 1, Kept()
    before = _length.locals_of(sys._getframe())["mine"]
    names = locals() if asks else None
    gone = weakref.ref(kept)
    read = _length.locals_of(sys._getframe())
    del kept, read
    print(before, names and names["mine"], asks or gone() is None)
function(True)
function(False)
`

func TestWhatLocalsReturnedStaysTheProgramsOwn(t *testing.T) {
	t.Parallel()
	agentProgram(t, locals, "1 1 True\n1 None True\n")
}

// A GPU's blocks are looked for if they were there at the look before: of a list that grows fast they are neither the first nor the last.
func TestWhatIsInTheMiddleOfALongContainerIsFound(t *testing.T) {
	agentProgram(t, tensors+`
import collections
for kept in [Tensor() for _ in range(5000)], collections.deque(Tensor() for _ in range(5000)), {i: Tensor() for i in range(5000)}:
    wanted = {t.storage._cdata: 0 for t in list(kept.values() if type(kept) is dict else kept)[1000:4000]}
    walk = _walk.Walk(torch, wanted, {})
    walk.run(9)
    path, kind, items, _ = walk.hits[0].holder(len(wanted))
    print(walk.covered(), path, kind, items)
`, `{0} __main__.kept list 5000
{0} __main__.kept deque 5000
{0} __main__.kept dict 5000
`)
}

// torch._dynamo takes heapq out of sys.modules while it imports it anew, and a snapshot may come in between. The path of a chain was an error
// then: Counter.most_common(n) imports heapq.
func TestAPathIsReadWhileHeapqIsImported(t *testing.T) {
	agentProgram(t, `
import sys, types
from memdiag import _walk
sys.modules["heapq"] = types.ModuleType("heapq")
node = _walk.Node(_walk.Node(None, "__main__"), ".newest", "variable")
for _ in range(3):
    node = _walk.Node(node, ".previous", "attribute")
print(*node.chain())
`, "__main__.newest.previous… 3\n")
}
