//go:build unix

package record_test

import "testing"

// counted shares out, of storages by address, those that nobody watched. The names of
// the watched are their stacks, with a weight and a turn where these matter.
const counted = `
from memdiag._census import share_out

def check(what, sizes, watched, sampled, growing, counts, rest, each=0):
    sizes = {a: like if type(like) is tuple else (like, 0) for a, like in sizes.items()}
    told = {a: w if type(w) is tuple else (w, 1, 0) for a, w in watched.items()}
    got = share_out(sizes, {like: each for like in sizes.values() if each}, {a: [w[0], sizes.get(a, (4, 0))[0], 0, *w[1:]] for a, w in told.items()}, sampled, growing)
    got = got[0], {size: n for size, (n, _) in got[1].items()}
    assert got == (counts, rest), (what, got)

check("of a size, evenly among those that were sampled",
      {1: 64, 2: 64, 3: 64, 11: 64, 12: 64, 13: 64, 14: 64, 15: 64}, {1: "a", 2: "b", 3: "a"}, {1, 2}, {"a"}, {1: 3, 2: 4, 3: 1}, {})
check("of a size that was last seen when all was watched, to what grew",
      {1: 64, 2: 64, 11: 64}, {1: "grows", 2: "once"}, set(), {"grows"}, {1: 2, 2: 1}, {})
check("of a size that no watched one has, to those that are nearly as large",
      {1: 100, 2: 4000, 11: 120, 12: 3000, 13: 3001}, {1: "a", 2: "b"}, {1, 2}, set(), {1: 2, 2: 3}, {})
check("what is left has no stack", {1: 64, 11: 9000, 12: 9000}, {1: "a"}, {1}, set(), {1: 1}, {9000: 2})
check("what the graph alone holds is not counted", {2: 64}, {1: "graph", 2: "a"}, {1, 2}, set(), {2: 1}, {})
check("of many tensors some were looked into, which stand for the others",
      {2: 64, 11: 64, 12: 64, 13: 32}, {1: "a", 2: "b"}, {1, 2}, set(), {1: 1, 2: 21}, {32: 10}, each=10)
check("of a size and a part of the graph, to those of the same part",
      {1: (64, 0), 2: (64, 1), 11: (64, 1), 12: (64, 1)}, {1: "a", 2: "b"}, {1, 2}, {"a"}, {1: 1, 2: 3}, {})
ten = range(1, 11)
check("of what the graph alone holds those of watched steps have handles, and stand for the others",
      dict.fromkeys(ten, 64), {a: ("graph", 4, a) for a in ten}, set(ten), {"graph"}, dict.fromkeys(ten, 4), {})
check("what was made in one step stands for itself",
      dict.fromkeys(ten, 64), {a: ("cache", 4, 1) for a in ten}, set(ten), set(), dict.fromkeys(ten, 1), {})
check("as many handles as chance may leave are all there are",
      {a: 64 for a in range(1, 31)}, {a: ("a", 4, a) for a in ten}, set(ten), {"a"}, dict.fromkeys(ten, 3), {})
check("what was watched on purpose is none that chance had watched",
      dict.fromkeys(range(1, 9), 64), {**{a: ("copies", 8 * a, a) for a in (1, 2)}, **{a: ("copies", 1, a) for a in range(3, 9)}},
      set(range(1, 9)), {"copies"}, dict.fromkeys(range(1, 9), 1), {})
preset, renewed = range(1, 41), range(101, 121)
check("what replaces another line's has its weight from that line's share, since all handles were counted",
      {a: 64 for a in [*preset, *renewed, *range(1000, 1140)]}, {**{a: ("preset", 1, 0) for a in preset}, **{a: ("renewed", 8, a) for a in renewed}},
      {*preset, *renewed}, {"renewed"}, {**dict.fromkeys(preset, 1), **dict.fromkeys(renewed, 8)}, {})
check("empty storages are none", {1: 64, 11: 0}, {1: "a"}, {1}, set(), {1: 1}, {})
`

func TestWhatNobodyWatchedIsSharedOutBySize(t *testing.T) {
	t.Parallel()
	agentProgram(t, counted, "")
}

// traced has a tensor of a graph that torch.compile traces, and one of the program's.
const traced = `
import types
from memdiag import _census

class Symbol:
    __hash__ = None
class Storage:
    def __init__(self, size):
        self.size, self._cdata = size, id(self)
    def nbytes(self):
        return self.size
    def resizable(self):
        return True
class Tensor:
    is_cpu, requires_grad = True, False
    def __init__(self, size):
        self.storage = Storage(size)
    def untyped_storage(self):
        return self.storage
tensors = [Tensor(Symbol()), Tensor(8)]
torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Tensor))
print(list(_census.handled(torch)[0].values()))
tensors.append(Tensor(16))
Storage.data_ptr = lambda self: 100 * self.size
pinned = types.SimpleNamespace(start=lambda pointer: 1024 if pointer == 1600 else None)
print(list(_census.handled(torch, pinned=pinned)[0].values()))
del Storage.resizable  # as in PyTorch 2.1
print(_census.lender(tensors[1].storage))
`

// sliced has a hundred thousand tensors of ten thousand storages, ten in a row of each, and as many that have one by itself.
const sliced = `
import types
from memdiag import _census

class Storage:
    def __init__(self, size):
        self.size, self._cdata = size, id(self)
    def nbytes(self):
        return self.size
    def resizable(self):
        return True
class Tensor:
    is_cpu, requires_grad = True, False
    def __init__(self, storage):
        self.storage = storage
    def untyped_storage(self):
        return self.storage
tensors = [Tensor(s) for _ in range(10_000) for s in [Storage(64)] * 10 + [Storage(8)]]
torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Tensor))
storages, each = _census.handled(torch)
for size in 8, 64:
    found = sum(like[0] == size for like in storages.values()) * each[size, 0]
    print(size, 9_000 < found < 11_000)
`

// Of many tensors, those of one storage were counted as so many storages: a list of sliced batches was said to hold six times its memory.
func TestManyTensorsOfOneStorageCountOnce(t *testing.T) {
	t.Parallel()
	agentProgram(t, sliced, "8 True\n64 True\n")
}

// A snapshot while torch.compile traced with dynamic shapes failed, and after three the recording ended.
func TestATensorWhoseSizeIsASymbolTakesNoMemoryAndAPinnedOneHasARecord(t *testing.T) {
	t.Parallel()
	agentProgram(t, traced, "[(8, 0)]\n[(8, 0)]\n0\n")
}

// remembered compares what a census remembers with all that there is, while tensors come and go and the collector
// makes some of them old, and counts how often it went through all of Python's objects.
const remembered = `
import gc, random
from memdiag import _census
from memdiag._objects import of_types

class Tensor: pass
class Parameter(Tensor): pass
kinds, walks = (Tensor, Parameter), 0

def counting(kinds, find, *args):
    global walks
    walks += find is gc.get_referrers
    return of_types(kinds, find, *args)

_census.of_types = counting
handles, kept = _census.Handles(), []
draw = random.Random(7).random
for census in range(200):
    for _ in range(int(60 * draw())):
        what = draw()
        if what < 0.6:
            kept.append(random.choice(kinds)())
        elif kept:
            kept.pop(int(len(kept) * draw()))
    if draw() < 0.1:
        gc.collect(int(3 * draw()))
    if draw() < 0.05:
        kept.append([Tensor for _ in range(int(9 * draw()))])
    found = handles.of(kinds)
    assert len(found) == len({*map(id, found)})
    assert {*map(id, found)} == {id(t) for t in of_types(kinds, gc.get_referrers, *kinds)}, census
assert 0 < walks < 50, walks
`

func TestACensusRemembersTensorsAndFindsAllNewOnes(t *testing.T) {
	t.Parallel()
	agentProgram(t, remembered, "")
}

// larger has stacks make ever larger storages: of the one before, which nobody may have seen being made, of what this step made,
// and of what is as large as ever.
const larger = `
import types
from memdiag import _torch

class Storage:
    def __init__(self, address, size):
        self._cdata, self.nbytes = address, lambda: size
class Tensor:
    layout = "strided"
    def __init__(self, address, size):
        self.untyped_storage = lambda: Storage(address, size)
source = _torch.Torch(None)
source.module, source.turn = types.SimpleNamespace(Tensor=Tensor, strided="strided"), 7
source.table = {1: [0, 100, 5, 1, 6], 2: [0, 110, 6, 1, 7]}
for stack, args in enumerate(([Tensor(1, 100)], [[Tensor(9, 100), Tensor(2, 20)], 0], [Tensor(2, 110)], [Tensor(9, 99)], [Tensor(9, 120)], [4, 25])):
    source.grows(stack, 100, ())
    source.grows(stack, 120, args)
print(source.grown, source.anew)
source.grows(5, 130, [Tensor(9, 120)])
source.grows(5, 140, ())
print(source.grown, source.anew)
`

func TestOfWhatLargerStoragesAreMade(t *testing.T) {
	t.Parallel()
	agentProgram(t, larger, "{0, 1} {2, 3, 4, 5}\n{0, 1, 5} {2, 3, 4}\n")
}

// queued has storages of one stack that stood for others of their size, and are gone while the others are not, as the first of a
// queue; and one stack of which one is left.
const queued = `
from memdiag import _torch

source = _torch.Torch(None)
source.stood = {100: 7, 200: 8}
storages = {1: (100, 0), 2: (100, 0), 3: (100, 4), 4: (200, 0), 5: (200, 0), 6: (300, 0)}
gone = source.of_stacks_gone(storages, {(100, 4): 2.5}, {1: [3, 100, 0, 1, 0], 4: [8, 200, 0, 1, 0]})
print(gone, sorted(storages))
print(source.of_stacks_gone(storages, {}, {1: [7, 100, 0, 1, 0], 4: [8, 200, 0, 1, 0]}))
`

func TestWhatOutlivesTheWatchedOfItsStackKeepsTheStack(t *testing.T) {
	t.Parallel()
	agentProgram(t, queued, "{100: [3.5, 2]} [1, 4, 5, 6]\n{}\n")
}
