//go:build unix

package record_test

import "testing"

// longer has containers of all kinds become longer, and others that stay or are emptied.
const longer = `
import collections, functools, threading, types
from memdiag import _agent, _holders, _items

class Row:
    def __init__(self, n, shared):
        self.values, self.shared = [0.5] * n, shared
class Native:
    def __init__(self):
        self.lock = threading.Lock()
    def __getattribute__(self, name):
        raise AssertionError("the program's own code was asked")
shared = list(range(1000))
rows, tags, losses, natives, same, queue, cache = [], {}, [], [], [1] * 9, collections.deque(maxlen=100), []
@functools.lru_cache(maxsize=None)
def square(n):
    return n * n

def step(n):
    rows.append(Row(100, shared))
    tags[len(tags)] = str(n) * 500
    losses.append(0.5 * len(losses))
    natives.append(Native())
    queue.append(str(n) * 200)
    square(len(rows))
    cache.append(str(n) * 300)

agent = types.SimpleNamespace(step=9, ticks=0, ticker=types.SimpleNamespace(thread=None, acts=lambda: False))
search = _holders.Search(agent, types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set()))
def look(what):
    snapshot = _agent.Snapshot()
    search.containers.fill(snapshot)
    print(what)
    for h, d, n in sorted(zip(snapshot.holders, snapshot.devices, snapshot.blocks["count"]), key=lambda t: t[0]["path"]):
        if "__main__" in h["path"] and "search" not in h["path"]:
            print(" ", h["path"], h["kind"], h["items"] == n, h["items"], h["each"] > 100, h.get("bound", 0), d["kind"])

for walk in range(3):
    for _ in range(5):
        step(walk)
    search.walk({}, {}, {}, seconds=9, counting=True)
    look("after walk %d" % (walk + 1))
    if walk == 1:
        cache.clear()
step(3)
look("a step later")
print(sorted(_items.weight(c) // 100 for c in ([], [1], [Row(100, shared)], [Row(100, shared), Row(200, shared)], [Row(9, list(range(9000)))] * 2)))
`

func TestContainersThatBecomeLongerAreFollowed(t *testing.T) {
	t.Parallel()
	agentProgram(t, longer, `after walk 1
after walk 2
  __main__.cache list True 10 True 0 items
  __main__.losses list True 10 False 0 items
  __main__.natives list True 10 True 0 items
  __main__.queue deque True 10 True 100 items
  __main__.rows list True 10 True 0 items
  __main__.square cache True 10 False 0 items
  __main__.tags dict True 10 True 0 items
after walk 3
  __main__.losses list True 15 False 0 items
  __main__.natives list True 15 True 0 items
  __main__.queue deque True 15 True 100 items
  __main__.rows list True 15 True 0 items
  __main__.square cache True 15 False 0 items
  __main__.tags dict True 15 True 0 items
a step later
  __main__.losses list True 16 False 0 items
  __main__.natives list True 16 True 0 items
  __main__.queue deque True 16 True 100 items
  __main__.rows list True 16 True 0 items
  __main__.square cache True 16 False 0 items
  __main__.tags dict True 16 True 0 items
[0, 0, 0, 0, 16]
`)
}
