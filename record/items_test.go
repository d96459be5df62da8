//go:build unix

package record_test

import "testing"

// longer has containers of all kinds become longer, and others that stay or are emptied.
const longer = `
import array, collections, functools, io, types
from memdiag import _agent, _holders, _items

class Row:
    def __init__(self, n, shared):
        self.values, self.shared = [0.5] * n, shared
class Native:
    def __getattribute__(self, name):
        raise AssertionError("the program's own code was asked")
shared = list(range(1000))
rows, tags, losses, natives, same, queue, cache = [], {}, [], [], [1] * 9, collections.deque(maxlen=100), []
text, log, still, numbers, words, closed = bytearray(), io.BytesIO(), bytearray(100_000), array.array("b"), io.StringIO(), io.StringIO()
closed.close()
@functools.lru_cache(maxsize=None)
def square(n):
    return n * n

def step(n):
    rows.append(Row(200, shared))
    tags[len(tags)] = str(n) * 5000
    losses.append(0.5 * len(losses))
    natives.append(Native())
    queue.append(str(n) * 2000)
    square(len(rows))
    cache.append(str(n) * 3000)
    text.extend(b"0" * 10_000)
    numbers.extend(b"0" * 10_000)
    log.write(b"0" * 10_000)
    words.write("0" * 10)

agent = types.SimpleNamespace(step=9, stepping=True, ticks=0, ticker=types.SimpleNamespace(thread=None, acts=lambda: False))
search = _holders.Search(agent, types.SimpleNamespace(module=None, table={}, saved="", handled=None, given=set()))
def look(what):
    snapshot = _agent.Snapshot()
    search.containers.fill(snapshot)
    print(what)
    for h, d, n in sorted(zip(snapshot.holders, snapshot.devices, snapshot.blocks["count"]), key=lambda t: t[0]["path"]):
        if "__main__" in h["path"] and "search" not in h["path"]:
            print(" ", h["path"], h["kind"], h["items"] == n, h["items"] if h["each"] != 1 else h["items"] > 90_000, h["each"] > 1000, h.get("bound", 0), d["kind"])

for walk in range(3):
    for _ in range(5):
        step(walk)
    search.walk({}, {}, {}, seconds=9, counting=True)
    look("after walk %d" % (walk + 1))
    if walk == 1:
        cache.clear()
step(3)
look("a step later")
print(*(_items.weight(c) > 1500 for c in ([], [1], [Row(100, shared)], [Row(100, shared), Row(200, shared)], [Row(9, list(range(9000)))] * 2)))
`

func TestContainersThatBecomeLongerAreFollowed(t *testing.T) {
	t.Parallel()
	agentProgram(t, longer, `after walk 1
after walk 2
  __main__.cache list True 10 True 0 items
  __main__.log BytesIO True True False 0 items
  __main__.losses list True 10 False 0 items
  __main__.natives list True 10 False 0 items
  __main__.numbers array.array True True False 0 items
  __main__.queue deque True 10 True 100 items
  __main__.rows list True 10 True 0 items
  __main__.square cache True 10 False 0 items
  __main__.tags dict True 10 True 0 items
  __main__.text bytearray True True False 0 items
  __main__.words StringIO True 100 False 0 items
after walk 3
  __main__.log BytesIO True True False 0 items
  __main__.losses list True 15 False 0 items
  __main__.natives list True 15 False 0 items
  __main__.numbers array.array True True False 0 items
  __main__.queue deque True 15 True 100 items
  __main__.rows list True 15 True 0 items
  __main__.square cache True 15 False 0 items
  __main__.tags dict True 15 True 0 items
  __main__.text bytearray True True False 0 items
  __main__.words StringIO True 150 False 0 items
a step later
  __main__.log BytesIO True True False 0 items
  __main__.losses list True 16 False 0 items
  __main__.natives list True 16 False 0 items
  __main__.numbers array.array True True False 0 items
  __main__.queue deque True 16 True 100 items
  __main__.rows list True 16 True 0 items
  __main__.square cache True 16 False 0 items
  __main__.tags dict True 16 True 0 items
  __main__.text bytearray True True False 0 items
  __main__.words StringIO True 160 False 0 items
False False False True False
`)
}

// lines has containers become longer in the program's own code, in what it calls, and in a function that returns.
const lines = `
import functools, sys, types
from memdiag import _items, _lines, _walk

library = types.ModuleType("figures")
exec(compile("""
figs = {}
def subplots():
    figs[len(figs)] = []
def call(f):
    return f()
""", "/usr/lib/python3/site-packages/figures.py", "exec"), library.__dict__)
sys.modules["figures"] = library
rows, natives, late = [], [], []

def draw():
    x = 1
    library.subplots(); x += 1
    return x
def hook():
    rows.append(
        1)
def work(step):
    draw()
    library.call(hook)
    if step > 1:
        late.append([draw() for _ in range(2)])
    try:
        natives.append(1 / 0)
    except ZeroDivisionError:
        natives.extend("ab")

place = _walk.Node(None, "__main__")
containers = _items.Containers(lambda *_: 0, _walk.key_text)
agent = types.SimpleNamespace(elapsed=lambda: 9.0, stopped=False)
lines = _lines.Lines(agent, containers, _walk.key_text)
containers.follow([(_walk.Node(place, "." + name, "variable"), globals()[name], True) for name in ("rows", "natives", "late")])
containers.follow([(_walk.Node(_walk.Node(None, "figures"), ".figs", "variable"), library.figs, False)])
for c in containers.kept:
    c.grown = True
for step in range(4):
    work(step)
    print(sys.gettrace() is not None, end=" ")
    lines.boundary()
lines.end()
print(sys.gettrace(), sys._getframe().f_trace)
for c in sorted(containers.kept, key=lambda c: c.path):
    print(c.path, *(name + ":" + str(line) for name, _, line in c.stack or ()))

containers.kept[0].stack = None
lines.events, agent.elapsed = 0, lambda: -9.9999
lines.boundary()
work(5)
print(sys.gettrace(), lines.events, lines.at, lines.suspended.frames)

agent.elapsed = lambda: 9.0
lines.boundary()
agent.stopped = True
draw()
print(sys.gettrace(), lines.at, lines.suspended.frames, containers.kept[0].stack)
`

func TestTheLineAtWhichAContainerBecomesLonger(t *testing.T) {
	t.Parallel()
	agentProgram(t, lines, `False True False False None None
__main__.late work:27 <module>:42
__main__.natives work:31 <module>:42
__main__.rows hook:21 call:6 work:25 <module>:42
figures.figs draw:18 work:24 <module>:42
None 3 None {}
None None {} None
`)
}

// within has the watch end while Python calls it for a line, whose function has variables.
const within = `
import sys, types
from memdiag import _items, _lines, _walk

rows = []
containers = _items.Containers(lambda *_: 0, _walk.key_text)
lines = _lines.Lines(types.SimpleNamespace(elapsed=lambda: 9.0, stopped=False), containers, _walk.key_text)
containers.follow([(_walk.Node(_walk.Node(None, "__main__"), ".rows", "variable"), rows, True)])

def work():
    value = 41
    containers.kept[0].grown = True
    lines.boundary()
    watched = sys.gettrace() is not None
    rows.append(1)
    return watched, sys.gettrace(), value + 1

print(work())
`

func TestAWatchThatEndsWithinALineTakesNoVariable(t *testing.T) {
	t.Parallel()
	agentProgram(t, within, "(True, None, 42)\n")
}

// A StringIO that is only read becomes longer, too: its characters are no leak of a megabyte each.
func TestACharacterOfABufferTakesSomeBytes(t *testing.T) {
	t.Parallel()
	agentProgram(t, `import io
from memdiag._items import weight
print(weight(bytearray(9)), weight(io.BytesIO()), weight(io.StringIO()))
`, "1 1 2\n")
}
