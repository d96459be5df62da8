//go:build unix

package record_test

import "testing"

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
def composed(before, table):
    return lambda: (before, table)
wrapped = None
for _ in range(5):
    wrapped = composed(wrapped, tuple(Thing() for _ in range(9)))
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
            _walk.vote(self.hits, "table" if " table" in node.path() else node.label, node)
            nodes.update((id(c), c) for c in node.containers() if " table" not in c.path())

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
    for label in ".value", ".batch", "table":
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
__main__.wrapped closure before… chain 5
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
