//go:build unix

package record_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// walked lets the agent's walk find containers, which then grow.
const walked = `
import functools, sys, threading
from memdiag import _walk
from memdiag._length import length

class Box:
    __slots__ = ("kept",)
class Log:
    pass
class Thing:
    pass
log, box = Log(), Box()
log.by_name, box.kept = {"a": [Thing(), Thing()]}, {Thing(), Thing()}
@functools.lru_cache(maxsize=None)
def cached(i):
    return Thing()
cached(0), cached(1)
deep = [[Thing(), Thing()]]
def inner():
    caught = [Thing(), Thing()]
    def f():
        return caught
    return f, caught
closure, caught = inner()
del globals()["caught"]
@functools.lru_cache(maxsize=9)
def recent(i):
    return Thing()
recent(0), recent(1)
def remember(seen=[Thing(), Thing()], *, known=[Thing(), Thing()]):
    return seen, known
def waits():
    window = [Thing(), Thing()]
    while True:
        yield window
local = threading.local()
local.rows = [Thing(), Thing()]
waiting = waits()
next(waiting)
class Link:
    def __init__(self, previous):
        self.value, self.previous = Thing(), previous
newest = Link(Link(Link(Link(None))))
failed = None
def fails():
    global failed
    batch = Thing()
    try:
        raise ValueError from failed
    except ValueError as e:
        failed = e
[fails() for _ in range(4)]

class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, node.label, node)
            nodes.update((id(c), c) for c in node.containers())

def outer():
    own = [Thing(), Thing()]
    replaced = [Thing(), Thing()]
    walk = Finds(None, {1: "all"}, {})
    walk.run(60)
    places = {c.path(): c for c in nodes.values()}
    log.by_name["a"] += 5 * [None]
    box.kept.add(1)
    own.append(1)
    replaced = replaced + [1]
    closure().append(1)
    [(seen.append(1), known.append(1)) for seen, known in [remember()]]
    next(waiting).append(1)
    local.rows.append(1)
    [recent(i) for i in range(12)]
    [cached(i) for i in range(9)]
    for path in sorted(places):
        try:
            print(path, places[path].items, length(places[path], _walk.key_text))
        except LookupError:
            print(path, "is not reached")
    for label in ".value", ".batch":
        print(*walk.hits[label].holder()[:3])
class Runner:
    def go(self):
        self.rows = [Thing(), Thing()]
        outer()
nodes = {}
Runner().go()
`

func TestALengthIsReadAgainWithoutAWalk(t *testing.T) {
	t.Parallel()
	want := `Runner.rows 2 2
__main__.box.kept 2 3
__main__.cached 2 9
__main__.closure closure caught 2 3
__main__.deep 1 1
__main__.deep[…] 2 2
__main__.local.rows 2 3
__main__.log.by_name 1 1
__main__.log.by_name['a'] 2 7
__main__.recent 2 9
__main__.remember default known 2 3
__main__.remember default seen 2 3
__main__.waiting.window 2 3
outer.<locals>.own 2 3
outer.<locals>.replaced is not reached
__main__.newest.previous… chain 4
__main__.failed.__cause__… chain 4
`
	agentProgram(t, walked, want)
}

// layered has what grows in several containers at once.
const layered = `
from memdiag import _holders, _walk

class Thing:
    pass
class Layer:
    def __init__(self, n):
        self.acts, self.fixed = [Thing() for _ in range(n)], [Thing()]
net = [Layer(40), Layer(60), Layer(50)]
logs = {"train": [(Thing(), Thing()) for _ in range(90)], "test": [(Thing(), Thing()) for _ in range(30)]}
episodes = [[Thing(), Thing(), Thing()] for _ in range(30)]
seen = [Thing() for _ in range(7)]
seen_now, seen_before = Thing(), Thing()
def batches():
    done = [Thing(), Thing()]
    while True:
        yield done

class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, node.path().replace("<locals>.", "").split(".")[1].split("[")[0].split("_")[0], node)

for rows in batches():
    walk = Finds(None, {1: "all"}, {})
    del rows
    walk.run(60)
    break
for name in "net", "logs", "episodes", "seen", "done":
    path, kind, items, nodes = walk.hits[name].holder()
    print(kind, path, items)
    logs["test"].append(None)
    print(_holders.Search(None, None).length(nodes, items))
`

func TestContainersThatAreAlikeAreNamedTogether(t *testing.T) {
	t.Parallel()
	agentProgram(t, layered, `list __main__.net[…].acts and 2 more like it 150
150
list __main__.logs['train'] and 1 more like it 120
122
list __main__.episodes 30
30
list __main__.seen 7
7
list batches.<locals>.done 2
2
`)
}

// module has parts in the dictionaries of an nn.Module's.
const module = `
from memdiag import _holders, _walk

class Thing:
    pass
class Module:
    def __init__(self, **parts):
        self._parameters, self._buffers, self._modules = {}, {}, parts
net = Module(bank=Module(), norm=Module(), log=Module())
net._modules["bank"]._buffers.update(("proto_%d" % i, Thing()) for i in range(600))
net._modules["norm"]._buffers.update(mean=Thing(), var=1, steps=2)
net._modules["log"].rows = [Thing(), Thing()]

class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, node.label.rstrip("0123456789"), node)

walk = Finds(None, {1: "all"}, {})
walk.run(60)
del net._modules["bank"]._buffers["proto_3"]
net._modules["log"].rows.append(None)
for name in ".proto_", ".mean", "[…]":
    votes = walk.hits[name]
    path, kind, items, nodes = votes.holder()
    print(kind, path, round(votes.total), items, _holders.Search(None, None).length(nodes, items))
`

func TestAModulesBuffersThatGrowAreAContainer(t *testing.T) {
	t.Parallel()
	agentProgram(t, module, `dict __main__.net.bank._buffers 600 600 599
attribute __main__.net.norm.mean 1 0 0
list __main__.net.log.rows 2 2 3
`)
}

// keys has what grows as the keys of a dictionary, and in it.
const keys = `
import collections, tracemalloc
from memdiag import _walk

tracemalloc.start(8)
counts, log = {}, []
for i in range(6000):
    key = (i, i + 1)
    counts[key] = 1
    log.append(1000.5 + i)
lines = collections.Counter(stack for _, _, stack, _ in tracemalloc._get_traces())
lines = {stack: n for stack, n in lines.items() if stack[0][1] in (8, 10)}
walk = _walk.Walk(None, {}, lines)
walk.run(60)
for stack, votes in sorted(walk.line_hits.items()):
    path, kind, items, _ = votes.holder()
    print(kind, path, items, "enough" if votes.total >= _walk.LINES_COVERAGE * lines[stack] else "too few")
`

func TestKeysOfALargeDictionaryStandForAllOfThem(t *testing.T) {
	t.Parallel()
	agentProgram(t, keys, "dict __main__.counts 6000 enough\nlist __main__.log 6000 enough\n")
}

// round has a window see less than one round of a loop, which keeps the list that a variable still has.
const round = `
import _tracemalloc, collections
from memdiag import _holders, _walk

def work():
    kept = []
    for i in range(50):
        if i == 49:
            _tracemalloc.start(8)
        made = [float(i + j) for j in range(2000)]
        kept.append(made)
    lines = collections.Counter(stack for _, _, stack, _ in _tracemalloc._get_traces())
    lines = dict(lines.most_common(1))
    walk = _walk.Walk(None, {}, lines, items=_walk.NEW)
    walk.run(60)
    for votes in walk.line_hits.values():
        print(*votes.holder(1)[:3])
work()
`

func TestInAWindowANewListInAVariableIsNotWhatGrows(t *testing.T) {
	t.Parallel()
	agentProgram(t, round, "work.<locals>.kept list 50\n")
}

// tensors stand in for PyTorch's.
const tensors = `
import functools, types, weakref
from memdiag import _agent, _holders, _walk

class Storage:
    device = types.SimpleNamespace(type="cpu")
    def __init__(self, size):
        self._cdata, self.size = id(self), size
    def nbytes(self):
        return self.size
class Tensor:
    __slots__ = "storage", "grad_fn", "is_leaf", "grad", "_backward_hooks"
    def __init__(self, size=8, grad_fn=None):
        self.storage, self.grad_fn, self.is_leaf, self.grad, self._backward_hooks = Storage(size), grad_fn, True, None, None
    def untyped_storage(self):
        return self.storage
class Function:
    made = 0
    def __init__(self, *inputs):
        self._saved_self, self.next_functions = Tensor(), [(i, 0) for i in inputs]
        Function.made += 1
        self._sequence_nr = functools.partial(int, Function.made)
torch = types.SimpleNamespace(Tensor=Tensor)
`

// searches look for tensors by their sites.
const searches = tensors + `
def search(*sites, births=range(20)):
    table = {t.untyped_storage()._cdata: [site, t.storage.size, 0, 1, turn]
        for site, tensors in enumerate(sites) for turn, t in zip(births, tensors)}
    agent = types.SimpleNamespace(jax=types.SimpleNamespace(array=lambda: None), ticker=types.SimpleNamespace(thread=None, acts=lambda: False), step=1, stepping=True, heap=types.SimpleNamespace(tracing=False, windows=types.SimpleNamespace(depth=None), outgrows=lambda: False), elapsed=lambda: 9)
    return _holders.Search(agent, types.SimpleNamespace(module=torch, cuda=None, table=table, saved="_saved_", handled=None, given=set(), turn=99, counted={}, pinned=set(), elsewhere=types.SimpleNamespace(left_out={"meta"})))
def show(search, stackless=()):
    snapshot = _agent.Snapshot()
    for site in range(3):
        snapshot.stacks.add(site, lambda: [("make", "a.py", site)])
    for t, n in stackless:
        snapshot.add(0, 0, n * t.storage.size, 0, -1, n)
    search.fill(snapshot)
    search.agent.step *= 2
    for h in snapshot.holders:
        if "each" in h:
            continue  # its length is followed, and it holds no stack's blocks
        print(h["kind"], h["path"], h["items"], "of stack", h["stack"], *(["at step", h["counted"]] if "counted" in h else []))
`

// held has tensors that only a registry of Python's holds, that only a graph does, whose stack was not recorded, and
// one that a larger one replaces.
const held = searches + `
class Model:
    pass
model = Model()
borrowed = [Tensor() for _ in range(20)]
[weakref.finalize(model, print, t).__setattr__("atexit", False) for t in borrowed]
s = search(borrowed)
last = borrowed[-1]
del borrowed
show(s)

total = state = loss = None
early, late = [], []
for _ in range(6):
    state = Tensor(grad_fn=Function(state and state.grad_fn, loss and loss.grad_fn))
    loss = Tensor(grad_fn=Function(state.grad_fn))
    early.append(state.grad_fn._saved_self)
    late.append(loss.grad_fn._saved_self)
s = search(early, late)
model.hidden, state, early, late = state, None, None, None
show(s)

parts = []
for _ in range(6):
    loss = Tensor(grad_fn=Function())
    parts.append(loss.grad_fn._saved_self)
    if len(parts) < 6:
        total = Tensor(grad_fn=Function(loss.grad_fn, total and total.grad_fn))
s, parts = search(parts), None
show(s)

rings = [Tensor(grad_fn=Function()) for _ in range(8)]
s = search([t.grad_fn._saved_self for t in rings])
grad = rings[-1]
del rings
show(s)
del grad

class Leaf(Tensor):
    pass
class Accumulates:
    next_functions = ()
    def __init__(self, variable):
        self.variable = variable
penalties, grads = [], []
for _ in range(6):
    leaf = Leaf()
    leaf.grad = Tensor()
    grads.append(leaf.grad)
    penalties.append(Tensor(grad_fn=Function(Accumulates(leaf))))
s, leaf, grads = search(grads), None, None
show(s)

def copied():
    states = [Tensor(24) for _ in range(4)]
    s = search()
    show(s, [(states[0], 4)])
    states += [Tensor(24) for _ in range(6)]
    show(s, [(states[0], 10)])
    return s
show(copied())

model.scores = Tensor(100)
s = search([model.scores])
show(s)
model.scores = Tensor(300)
s.source.table = search([model.scores]).source.table
show(s)

def nodes(step, behind):
    s.agent.step, node = step, None
    for _ in range(behind):
        node = Function(node)
    model.running = Tensor(grad_fn=node)
    show(s)
total = penalties = loss = None
del model.hidden
s = search()
s.agent.heap.outgrows = lambda: True
nodes(10, 50)
nodes(20, 80)
nodes(40, 300)
nodes(80, 20)
`

func TestHoldersOfTensors(t *testing.T) {
	t.Parallel()
	agentProgram(t, held, `dict weakref.finalize._registry 20 of stack 1
graph __main__.model.hidden 0 of stack 1
graph __main__.model.hidden 0 of stack 2
graph __main__.total 0 of stack 1
graph (no name leads to it) 0 of stack 1
graph __main__.penalties 6 of stack 1
list copied.<locals>.states 10 of stack 0
list copied.<locals>.states 10 of stack 0 at step 2
attribute __main__.model.scores 0 of stack 1
nodes __main__.model.running 80 of stack 4
nodes __main__.model.running 300 of stack 4
`)
}

// handles lets the agent tell lines of Python's heap beside tensors of the same lines.
const handles = `
import types
from memdiag import _agent, _heap

def small():
    return [object.__new__(Small) for i in range(600)]
class Small:
    __slots__ = ("a", "b", "c", "d", "e", "f", "g")
def told(steps=0, module=None, mode=None, **tensors):
    lines = {small.__code__.co_firstlineno + 1: tensors.get("there", 0)}
    torch = types.SimpleNamespace(module=module, cuda=None, mode=mode, recalibrate=lambda: None, bytes=0, count=0,
        lines=lambda: __import__("collections").Counter({(__file__, line): n for line, n in lines.items()}))
    agent = types.SimpleNamespace(settings={}, number=0, step=0, stepping=False, torch=torch, spent=0, elapsed=lambda: 9.0)
    heap = _heap.Heap(agent)
    heap.trace()
    kept = small()
    agent.step, agent.stepping = steps, steps > 0
    snapshot = _agent.Snapshot()
    heap.lines(snapshot)
    heap.stop()
    return any(c >= 600 for c in snapshot.blocks["count"])
print("no tensors there:", told())
print("as many tensors there:", told(there=600))
print("a few tensors there:", told(there=3))
torch = types.SimpleNamespace(__file__="/nowhere/torch/__init__.py")
print("one a step, tensors are recorded:", told(600, torch, object()))
print("one a step, tensors are not recorded:", told(600, torch))
print("one in ten steps, tensors are not recorded:", told(6000, torch))
def in_worker(batches):
    agent = types.SimpleNamespace(settings={}, number=1, step=0, stepping=False, batches=[batches], elapsed=lambda: 9.0,
        torch=types.SimpleNamespace(module=torch, lines=__import__("collections").Counter))
    heap = _heap.Heap(agent)
    heap.windows = types.SimpleNamespace(settle=lambda: None, vain=0, number=0, grown=lambda: [(24_000, 341, (("data.py", 7),))])
    snapshot = _agent.Snapshot()
    heap.window_lines(snapshot)
    return len(snapshot.blocks["count"])
print("two a batch:", in_worker(150), "ten a batch:", in_worker(34))
`

func TestHandlesOfTensorsAreNotToldBesideThem(t *testing.T) {
	t.Parallel()
	agentProgram(t, handles, "no tensors there: True\nas many tensors there: False\na few tensors there: True\n"+
		"one a step, tensors are recorded: False\none a step, tensors are not recorded: True\none in ten steps, tensors are not recorded: False\n"+
		"two a batch: 0 ten a batch: 1\n")
}

// agentProgram runs a Python program that uses the agent's parts.
func agentProgram(t *testing.T, program, want string) {
	t.Helper()
	heavytest.Sequential(t, "it is all Python")
	folder, err := record.Package(filepath.Join(t.TempDir(), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := recordtest.Command(t, python(t), script(t, program))
	cmd.Env = append(cmd.Env, "PYTHONPATH="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%swant:\n%s", err, out, want)
	}
}

// survivors has a function make tensors of a site, of which a list has the older ones.
const survivors = tensors + `
def search(births):
    made = [Tensor() for _ in births]
    table = {t.storage._cdata: [1, 8, 0, 1, turn] for turn, t in zip(births, made)}
    return made, _holders.Search(None, types.SimpleNamespace(table=table, turn=20, counted={}, pinned=set()))
for births in (range(21), [20] * 9, [1, 2, 20]):
    made, s = search(births)
    first = len(s.growing())
    for entry in s.source.table.values():
        entry[1] *= 9
    print(first, len(s.growing()))
made, s = search([1, 2, 3])
print(len(s.growing()))
s.source.counted = dict.fromkeys(s.source.table, 3)
print(len(s.growing()))
made, s = search([1])
for _ in range(6):
    more = Tensor()
    made.append(more)
    s.source.table[more.storage._cdata] = [1, 1, 0, 1, 1]
    print(len(s.growing()), end=" ")
`

// Who keeps what has survived says nothing of what the step makes that runs, and the other way round; of what is
// replaced there is nothing older. By the clock one turn may last for the whole run: there each look finds more.
func TestHoldersAreLookedForOfWhatHasSurvived(t *testing.T) {
	t.Parallel()
	agentProgram(t, survivors, "19 19\n0 9\n0 3\n0\n3\n0 0 0 0 6 7 ")
}

// starts has tensors without a name, as a loop has those of a loader, some of which have become more, and some that a list holds.
const starts = searches + `
import ctypes
def sought(births, listed=()):
    batches = [Tensor() for _ in births]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(batches))
    s = search(batches, listed, births=births)
    s.first, batches, beyond = {0: 8, 1: 8}, None, []
    s.registered.learn = lambda: beyond.append("goes beyond the program's names")
    show(s)
    print(births, *beyond)
kept = [Tensor() for _ in range(4)]
sought([1, 2, 3, 3])
sought([1, 2, 3, 3], kept)
sought([1, 2, 3, 4])
`

// A loader's first batches would take all that walks may cost, before a list has what leaks.
func TestWhatHasNotGrownOftenIsLookedForInTheProgramsNames(t *testing.T) {
	t.Parallel()
	agentProgram(t, starts, "[1, 2, 3, 3]\nlist __main__.kept 4 of stack 2\n[1, 2, 3, 3]\n[1, 2, 3, 4] goes beyond the program's names\n")
}

// unwatched is a state that carries the graph of 3,000 functions, of which the newest half is of steps that were not watched.
const unwatched = tensors + `
functions = [Function()]
for _ in range(2999):
    functions.append(Function(functions[-1]))
state = Tensor(grad_fn=functions[-1])
wanted = {f._saved_self.storage._cdata: 7 for f in functions[:1500]}
del functions
walk = _walk.Walk(torch, wanted, {}, saved="_saved_")
walk.run(30)
for site, (path, kind, _, _) in walk.graph_hits.items():
    print(site, kind, path, site in walk.in_graph)
`

func TestAGraphIsReadBeyondStepsThatWereNotWatched(t *testing.T) {
	t.Parallel()
	agentProgram(t, unwatched, "7 graph __main__.state True\n")
}

// nameless has objects that C code alone refers to, then methods that atexit has, and then objects that a list has: what is
// found says nothing of the others.
const nameless = `
import atexit, ctypes, gc, tracemalloc, types
import _tracemalloc
from memdiag import _holders, _walk
tracemalloc.start(1)
class Thing:
    __slots__ = ()  # else 3.11 does not tell where one was made
    def close(self):
        pass
kept = []
def keep(n):
    for _ in range(n):
        kept.append(Thing())
def lose(n):
    for _ in range(n):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(Thing()))
def held():
    things = [t for t in gc.get_objects() if type(t) is Thing]
    lines = {_walk.shortened(_tracemalloc._get_object_traceback(t)): 50 for t in things}
    del things
    search.agent = types.SimpleNamespace(step=0, stepping=False, ticks=1, ticker=types.SimpleNamespace(thread=None, acts=lambda: False),
                                         heap=types.SimpleNamespace(windows=types.SimpleNamespace(depth=None), outgrows=lambda: False))
    search.source = types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set(), turn=0)
    search.lines.clear()
    search.walk({}, {}, lines, 30)
    for path, kind, items, _ in sorted(holder for _, holder in search.lines.values()):
        print(path, kind, items - before if path == "atexit" else items)
search = _holders.Search(None, None)
before = _holders.exits()
lose(50)
held()
for _ in range(50):
    atexit.register(Thing().close)
held()
keep(50)
held()
atexit._clear()
`

func TestWhatNoNameLeadsToIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	agentProgram(t, nameless, "(no name leads to it) object 0\natexit list 50\natexit list 50\n__main__.kept list 50\n")
}

// The first walk knew no earlier number of atexit's functions, said that no name leads there, and later ones did not ask again.
func TestWhatAtexitHasIsSaidAlsoAfterAWalkThatDidNotKnow(t *testing.T) {
	t.Parallel()
	again := strings.Replace(nameless, "    search.lines.clear()\n", "", 1)
	agentProgram(t, again, "(no name leads to it) object 0\natexit list 50\natexit list 50\n__main__.kept list 50\natexit list 50\natexit list 50\n")
}

// tables has lines that make no objects, and a set that a walk sees only a part of.
const tables = `
import _tracemalloc, tracemalloc, types
from memdiag import _holders, _walk
class Pair:
    __slots__ = ("first",)
buffer, pairs = [], {Pair() for _ in range(5000)}
tracemalloc.start(1)
def grow():
    buffer.extend([1] * 400)
    for _ in range(3):
        pairs.add(Pair())
grow()
lines = {_walk.shortened(trace[2]): 3 for trace in _tracemalloc._get_traces() if trace[2][0][0] == __file__}
search = _holders.Search(None, None)
search.agent = types.SimpleNamespace(step=0, stepping=False, ticks=1, ticker=types.SimpleNamespace(thread=None, acts=lambda: False),
                                     heap=types.SimpleNamespace(windows=types.SimpleNamespace(depth=None), outgrows=lambda: False))
search.source = types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set(), turn=0)
for stack, n in lines.items():
    search.walk({}, {}, {stack: n}, 30, _walk.NEW)
print(_walk.NAMELESS in [path for _, (path, *_) in search.lines.values()])
`

// A list that a variable has became longer, and no name was said to lead to it: what the line had made was its table.
func TestNothingIsSaidOfALineWhoseBlocksAreNoObjects(t *testing.T) {
	t.Parallel()
	agentProgram(t, tables, "False\n")
}

// folds has a list of models; a variable also holds the last one.
const folds = `
from memdiag import _walk
class Thing:
    pass
models = []
for _ in range(6):
    model = Thing()
    model.parts = {"weight": Thing(), "bias": 0}
    models.append((model, 0))
class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing and node.label == "['weight']":
            _walk.vote(self.hits, "weights", node)
walk = Finds(None, {n: "weights" for n in range(6)}, {})
walk.run(60)
path, kind, items, nodes = walk.hits["weights"].holder()
print(kind, path, items, [n.items for n in nodes])
`

// The model that trained was found by its variable, and so nobody was said to hold those of the folds before.
func TestAListHoldsAlsoWhatAVariableHasOfIt(t *testing.T) {
	t.Parallel()
	agentProgram(t, folds, "list __main__.models 6 [6]\n")
}

// passing has a variable that has another container in each step, as long as the last one's.
const passing = `
import types
from memdiag import _holders, _walk

class Thing:
    pass
kept, history = [], [Thing()]
def step():
    global out, history
    out = {"logits": (Thing(), Thing(), Thing())}
    kept.append(out)
    history = history + [Thing()]

class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, "history" if ".history" in node.path() else "newest" if id(obj) in newest else "older", node)

def found(name, outs=()):
    global newest
    newest = {id(thing) for o in outs or [out] for thing in o["logits"]}
    walk = Finds(None, {1: "all"}, {})
    walk.passing = search.passing
    walk.run(60)
    path, kind, items, nodes = walk.hits[name].holder()
    print(kind, path, items)
    return nodes

search = _holders.Search(types.SimpleNamespace(), types.SimpleNamespace())
for _ in range(9):
    step()
first, longer = found("newest"), found("history")
print(search.passes(first))
step()
print(search.passes(first), search.passes(longer), search.next, sorted(search.passing))
found("newest", kept)
`

// TestAVariableOfTheStepDoesNotHoldWhatStays: the outputs of all samples were said to be held by the last one's.
func TestAVariableOfTheStepDoesNotHoldWhatStays(t *testing.T) {
	t.Parallel()
	agentProgram(t, passing, `tuple __main__.out['logits'] 3
list __main__.history 10
False
True False 0 [('__main__', '.out')]
list __main__.kept 10
`)
}

// outgrown has walks that are cut short, and that find no more what they found before.
const outgrown = searches + `
class Walk:
    near, kept, graph_hits, array_hits, torch, cut = True, None, {}, {}, None, True
    def __init__(self, *what):
        self.sizes, self.hits = {0: size}, {0: types.SimpleNamespace(holder=lambda n: holder, place=None)}
    def run(self, seconds, counting):
        print(round(seconds, 1), end=" ")
    def covered(self):
        return covers
    def held_lines(self):
        return []
_holders.Walk = Walk
kept = [Tensor() for _ in range(20)]
for holder in ("model.keys", "attribute", 0, ()), ("samples", "list", 5, (_walk.Node(None, "samples"),)):
    s = search(kept)
    s.budget.left, s.budget.affords = lambda: 0.3, lambda: True
    s.length = lambda nodes, items: items
    for size, covers in (5, [0]), (20, []), (21, []), (30, [0]):
        s.next = 0
        show(s)
        print("stays" if s.found else "goes")
Walk.graph_hits, s.sizes, size, covers = {0: ("total", "graph", 0, ())}, {0: 5}, 99, []
s.next = 0
show(s)
`

// The layers of a cache that the step that runs has were called the holder of all caches that a list kept: the walks were too short
// to come to that list, and what the first one found stayed.
func TestWhatHoldsOneOfManyIsForgotten(t *testing.T) {
	t.Parallel()
	agentProgram(t, outgrown, `0.1 attribute model.keys 0 of stack 1
stays
0.2 attribute model.keys 0 of stack 1
stays
0.3 goes
0.3 attribute model.keys 0 of stack 1
stays
0.1 list samples 5 of stack 1
stays
0.2 list samples 5 of stack 1 at step 1
stays
0.3 list samples 5 of stack 1 at step 1
stays
0.3 list samples 5 of stack 1
stays
0.3 graph total 0 of stack 1
`)
}
