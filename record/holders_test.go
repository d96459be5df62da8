//go:build unix

package record_test

import (
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

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

class Own(Function):
    def __init__(self, *inputs):
        super().__init__(*inputs)
        self.x = [Tensor()]
stored = [Tensor(grad_fn=Own()) for _ in range(6)]
s = search([t.grad_fn.x[0] for t in stored])
show(s)
del stored, s

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
graph __main__.stored 6 of stack 1
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
