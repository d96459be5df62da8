package record_test

import "testing"

// oldMalloc has glibc's figures of malloc as versions before 2.33 give them, in 32 bits, beside today's.
const oldMalloc = `
import ctypes
from memdiag._heap import mallinfo, unwrapped

now = iter([(2**32 - 10, 7, 0), (5, 7, 2**31 - 1), (2**32 - 20, 6, 2**32 - 2), (2**32 - 20, 6, 1)])
whole = unwrapped(lambda: next(now))
print([whole() for _ in range(3)])

class Old:
    mallinfo = ctypes.CDLL(None).mallinfo

read, old = mallinfo(), mallinfo(Old)
before, was = read(), old()
kept = bytearray(100 << 20)
after, then = read(), old()
print(abs(sum(after) - sum(before) - sum(then) + sum(was)) < 1 << 20, sum(then) - sum(was) > 99 << 20)
print(mallinfo(object()))
`

func TestTheHeapOfAnOldGlibcIsKnown(t *testing.T) {
	t.Parallel()
	agentProgram(t, oldMalloc, "[(4294967301, 7, 2147483647), (4294967276, 6, 4294967294), (4294967276, 6, 4294967297)]\nTrue True\nNone\n")
}

// silentMalloc is recorded where malloc gives no figures, as musl's and macOS's, and where it does.
const silentMalloc = `
import types
from memdiag import _heap, _own

for figures in None, (4 << 20, 1 << 20, 0):
    _heap.mallinfo = lambda: figures and (lambda: figures)
    agent = types.SimpleNamespace(settings={}, number=0, child=False, fixed=0, torch=types.SimpleNamespace(module=None, cuda=None, bytes=0, sweep=lambda: None), elapsed=lambda: 9.0, programs=lambda: 9.0, spent=0.0, step=0, stepping=False, ticker=types.SimpleNamespace(thread=None, interval=1.0, acts=lambda: False), holders=types.SimpleNamespace(look=lambda lines: 0))
    agent.heap, agent.own = _heap.Heap(agent), _own.Own(agent)
    snapshot = types.SimpleNamespace(notes=[], devices=[], device=lambda kind, *_, **meters: snapshot.devices.append((kind, meters)))
    with agent.own:
        agent.heap.fill(snapshot)
    process = dict(snapshot.devices).get("host", {})
    print("allocated" in process, process.get("mapped", 1) > 0, sum("gives no figures" in note for note in snapshot.notes))
`

// besideTorch has small objects stay beside PyTorch, whose tensors come and go, or has them go, too, where malloc gives no figures.
const besideTorch = `
import sys, types
from memdiag import _heap

sys.modules["torch"] = True
for stay in 100, 0:
    torch = types.SimpleNamespace(module=types.SimpleNamespace(__file__="torch/__init__.py"), cuda=None, bytes=0, count=0, lines=dict)
    own = types.SimpleNamespace(blocks=0, bytes=0, collects=False)
    agent = types.SimpleNamespace(settings={}, number=0, child=False, fixed=0, step=16, stepping=True, spent=0.0, own=own, torch=torch, elapsed=lambda: 9.0,
        holders=types.SimpleNamespace(graphs=types.SimpleNamespace(grow=lambda: False)))
    agent.heap = heap = _heap.Heap(agent)
    heap.mallinfo, highest = False, 0
    for _ in range(30):
        agent.step, torch.bytes = agent.step + 8, agent.step % 3 << 20
        own.entry = stay * agent.step, None
        snapshot = types.SimpleNamespace(notes=[], device=lambda *_, **meters: None)
        heap.fill(snapshot)
        highest = max(highest, heap.windows.level[1] if heap.windows.level else 0)
    print(heap.rises, highest, *(note[-38:] for note in snapshot.notes if "gives no figures" in note))
`

func TestSmallObjectsBesidePyTorchTellWithoutFiguresOfMalloc(t *testing.T) {
	t.Parallel()
	agentProgram(t, besideTorch, "True 0 --python-heap on --every N counts them\nFalse 0 --python-heap on --every N counts them\n")
}

func TestAMallocWithoutFiguresIsSaidToHaveNone(t *testing.T) {
	t.Parallel()
	agentProgram(t, silentMalloc, "False True 1\nTrue True 0\n")
}
