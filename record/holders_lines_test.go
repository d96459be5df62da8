//go:build unix

package record_test

import (
	"strings"
	"testing"
)

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

// What the collector does not know, such as NumPy's arrays, has nobody to be asked who refers to it. Tables of lists, which are
// no objects, are not taken for such.
func TestArraysThatNoNameLeadsToAreSaidToBeSo(t *testing.T) {
	t.Parallel()
	from, to := strings.Index(nameless, "    things = ["), strings.Index(nameless, "    search.agent = ")
	program := strings.Replace(nameless[:from]+nameless[to:strings.Index(nameless, "lose(50)\n")], "def held():", "def held(lines):", 1)
	agentProgram(t, program+`
track = ctypes.pythonapi.PyTraceMalloc_Track
track.argtypes = ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t
def arrays(n):
    for i in range(n):
        track(389047, 4096 * i, 800)
lists = [[] for _ in range(50)]
def tables():
    for items in lists:
        items.append(None)
arrays(50)
tables()
stacks = {_walk.shortened(stack) for _, _, stack, _ in _tracemalloc._get_traces()}
for of in arrays, tables:
    lines = range(of.__code__.co_firstlineno + 2, of.__code__.co_firstlineno + 3)
    held({s: 50 for s in stacks if s[0][1] in lines})
`, "(no name leads to it) object 0\n")
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
print(_holders.NAMELESS in [path for _, (path, *_) in search.lines.values()])
`

// A list that a variable has became longer, and no name was said to lead to it: what the line had made was its table.
func TestNothingIsSaidOfALineWhoseBlocksAreNoObjects(t *testing.T) {
	t.Parallel()
	agentProgram(t, tables, "False\n")
}

// texts has a buffer whose text is no object, which a line that grows makes longer between walks in windows.
const texts = `
import io, types
from memdiag import _holders
kept = io.StringIO()
search = _holders.Search(types.SimpleNamespace(step=0, stepping=False, ticks=1, elapsed=lambda: 9.0, ticker=types.SimpleNamespace(thread=None, acts=lambda: False),
                                               heap=types.SimpleNamespace(windows=types.SimpleNamespace(depth=None), outgrows=lambda: False)),
                         types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set(), turn=0))
search.budget.left, search.unexplained = lambda: 9.0, lambda: False
for _ in range(3):
    kept.write("a row\n")
    search.look({(("train.py", 4),): 50})
    print([c.path for c in search.containers.kept])
`

// A list of strings that a StringIO has is none that a walk sees: its line had no holder.
func TestABufferIsFollowedWhereNothingHoldsALine(t *testing.T) {
	t.Parallel()
	agentProgram(t, texts, "[]\n[]\n['__main__.kept']\n")
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

// arraysOfItems has a list of which each item has two arrays of one size, and one array beside it, when a walk finds them. Later it is longer.
const arraysOfItems = `
import types
from memdiag import _holders, _places
kept, beside = object(), object()
votes = _places.Votes()
votes.total, votes.containers = 21, {id(kept): [20, kept], id(beside): [1, beside]}
search = _holders.Search(types.SimpleNamespace(step=0, stepping=False, ticks=1), None)
search.next = 9
for items, nodes in (10, (kept,)), (0, ()):
    search.arrays = {8192: (votes.total, votes.inside(nodes), ("p", "list", items, nodes))}
    search.length = lambda nodes, items: 15
    print(*search.of_arrays())
`

func TestArraysOfItemsAreAsManyMoreAsTheItems(t *testing.T) {
	t.Parallel()
	agentProgram(t, arraysOfItems, "(8192, 31, 15, 'list', 'p')\n(8192, 21, 0, 'list', 'p')\n")
}

// A replay buffer was in doubt: while lines are traced, Python holds the variables that a function had at an earlier line, and a snapshot
// had the batch of the step before as well.
func TestASnapshotIsTakenWhileNoLinesAreTraced(t *testing.T) {
	t.Parallel()
	agentProgram(t, `
from types import SimpleNamespace as Fake
from memdiag._agent import Agent

def nothing(*args):
    return 0
order = []
a = Agent({"dir": ".", "rank": -1, "every": 1})
a.code, a.jax, a.heap = Fake(end=nothing, begin=nothing, on=False), Fake(boundary=nothing), Fake(ahead=nothing)
a.torch = Fake(watch=nothing, unwatched=nothing, cuda=None)
a.holders = Fake(watch=Fake(end=lambda: order.append("ends"), boundary=lambda: order.append("begins")))
a.take = lambda step: order.append("snapshot")
a.boundary(1)
print(*order)
`, "ends snapshot begins\n")
}
