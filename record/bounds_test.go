//go:build unix

package record_test

import "testing"

// finds has a walk find Things by the name of what holds them.
const finds = `
import re
from memdiag import _holders, _roots, _walk

class Thing:
    pass
class Finds(_walk.Walk):
    def visit(self, obj, node):
        super().visit(obj, node)
        if type(obj) is Thing:
            _walk.vote(self.hits, re.split(r"[\[{]|(?<=size)", node.path())[0], node)
def walk(**more):
    walk = Finds(None, {1: "all"}, {})
    for name, value in more.items():
        setattr(walk, name, value)
    walk.run(60)
    return {name: votes.holder() for name, votes in walk.hits.items()}
`

// bounded has containers that take no more than so many items, and one that only looks so.
const bounded = finds + `
import asyncio, collections, functools, logging.handlers, queue, types
replay = collections.deque([Thing(), Thing()], maxlen=9)
endless = collections.deque([Thing(), Thing()])
class Own(queue.Queue):
    pass
waiting, unlimited, own = queue.Queue(maxsize=8), queue.Queue(), Own(7)
later = asyncio.Queue(6)
for q in waiting, unlimited, own, later:
    q.put_nowait(Thing()), q.put_nowait(Thing())
records = logging.handlers.MemoryHandler(5)
records.buffer += [Thing(), Thing()]
@functools.lru_cache(maxsize=4)
def recent(i):
    return Thing()
recent(1), recent(2)
ring = [Thing(), Thing()] + [None] * 7
gaps = [Thing(), None, Thing(), None]
class Cache:
    __module__ = "cachetools"
    def __init__(self):
        self.__data, self.__maxsize = {1: Thing(), 2: Thing()}, 3
class LRUCache(Cache):
    pass
stored = LRUCache()
import sys
numpy = sys.modules["numpy"] = types.ModuleType("numpy")
class ndarray:
    base, dtype, size, flat = None, types.SimpleNamespace(char="O"), 4, [Thing(), None, Thing(), Thing()]
numpy.ndarray = ndarray
objects = ndarray()

agent = types.SimpleNamespace(step=1, stepping=True, ticks=0)
search = _holders.Search(agent, None)
found = walk()
def show():
    for name in "replay", "endless", "waiting", "unlimited", "own", "later", "records", "recent", "ring", "gaps", "stored", "objects":
        path, kind, items, nodes = next(v for k, v in found.items() if k.startswith("__main__." + name))
        print(kind, path, search.length(nodes, items), "of", search.bound(path, nodes))
show()
print("later")
agent.step = 2
ring[2] = Thing()
gaps += [Thing(), None]
show()
records.buffer.clear()
`

func TestABoundOfAContainerIsTold(t *testing.T) {
	t.Parallel()
	agentProgram(t, bounded, `deque __main__.replay 2 of 9
deque __main__.endless 2 of 0
deque __main__.waiting.queue 2 of 8
deque __main__.unlimited.queue 2 of 0
deque __main__.own.queue 2 of 7
deque __main__.later._queue 2 of 6
list __main__.records.buffer 2 of 5
cache __main__.recent 2 of 4
list __main__.ring 2 of 0
list __main__.gaps 2 of 0
dict __main__.stored._Cache__data 2 of 3
array __main__.objects 3 of 0
later
deque __main__.replay 2 of 9
deque __main__.endless 2 of 0
deque __main__.waiting.queue 2 of 8
deque __main__.unlimited.queue 2 of 0
deque __main__.own.queue 2 of 7
deque __main__.later._queue 2 of 6
list __main__.records.buffer 2 of 5
cache __main__.recent 2 of 4
list __main__.ring 3 of 9
list __main__.gaps 6 of 0
dict __main__.stored._Cache__data 2 of 3
array __main__.objects 3 of 0
`)
}

// rooted has holders that no plain name of the program's leads to.
const rooted = finds + `
import functools, sys, types

__kept__ = [Thing(), Thing()]
class Batch:
    @functools.lru_cache(maxsize=None)
    def size(self):
        return 1
    @functools.lru_cache(maxsize=9)
    def full_size(self, x):
        return 1
    def __init__(self):
        self.thing = Thing()
[Batch().size() for _ in range(3)]
[Batch().full_size(i) for i in range(4)]
import itertools
batches = itertools.cycle(Thing() for _ in range(5))
[next(batches) for _ in range(4)]

def module(name, file, source):
    m = sys.modules[name] = types.ModuleType(name)
    m.__file__ = file
    exec(source, m.__dict__)
    return m
own = module("own.train", "/home/me/own/train.py", "class Trainer:\n    rows = []\n    other = ()")
library = module("lib.figures", "/usr/site-packages/lib/figures.py", "class Gcf:\n    figs, still = {}, [1, 2]\nimported = Gcf\nnames = []")
class Odd:
    late = False
    def __hash__(self):
        assert not self.late
        return 1
    def __eq__(self, other):
        assert not self.late
        return self is other
library.Property = type("Property", (), {"__module__": Odd(), "rows": []})
library.__dict__[Odd()], globals()[Odd()] = [], []
Odd.late = True
again = module("lib.again", "/usr/site-packages/lib/again.py", "")
again.Gcf, Thing.__module__ = library.Gcf, "__main__"
registered = _roots.Registries()
registered.learn()
own.Trainer.rows += [Thing(), Thing()]
library.Gcf.figs.update({1: Thing(), 2: Thing(), 3: Thing()})
library.names += [Thing(), Thing()]
del own
print([node.path() for node, _ in registered.grown() if node.path().startswith("lib")])
found = walk(registered=registered)
for name in sorted(found):
    print(*found[name][:3])
next(batches)
search = _holders.Search(types.SimpleNamespace(), None)
print([search.length(found[name][3], "?") for name in found if "cycle" in name])
`

func TestRootsOfAWalk(t *testing.T) {
	t.Parallel()
	agentProgram(t, rooted, `['lib.figures.Gcf.figs', 'lib.figures.names']
__main__.Batch.full_size cache 4
__main__.Batch.size cache 3
__main__.__kept__ list 2
__main__.batches of itertools.cycle list 4
lib.figures.Gcf.figs dict 3
lib.figures.names list 2
own.train.Trainer.rows list 2
[5]
`)
}
