//go:build unix

package record_test

import "testing"

// carried has sums that grow, one that is begun anew, and what has no end: nodes stand in for autograd's.
const carried = `
import itertools, types
from memdiag import _agent, _graph, _walk

made = itertools.count(1)
class Storage:
    def __init__(self):
        self._cdata = id(self)
class Node:
    def __init__(self, *inputs, number=None):
        self.number, self.next_functions = number or next(made), [(n, 0) for n in inputs]
    def _sequence_nr(self):
        return self.number
class Tensor:
    __slots__ = "grad_fn", "storage"
    def __init__(self, end):
        self.grad_fn, self.storage = end, Storage()
    def untyped_storage(self):
        return self.storage

weight = Node(number=2**64 - 1)
def loss():
    return Node(Node(Node(weight), None), weight)
def mul(n):
    return Node(n)

class Log:
    pass
log, ends = Log(), {}
def step():
    ends["total"] = Node(ends.get("total"), loss())
    ends["mean"] = Node(mul(ends.get("mean")), mul(loss()))
    ends["first"] = Node(loss(), ends.get("first"))
    ends["last"] = loss()
    log.tensors = {name: Tensor(end) for name, end in ends.items()}
step()

place = _walk.Node(_walk.Node(_walk.Node(None, "__main__"), ".log", "variable"), ".tensors", "attribute")
places = {name: _walk.Node(place, "[%r]" % name) for name in ends}
table = {}
agent = types.SimpleNamespace(elapsed=lambda: 9.0)
source = types.SimpleNamespace(cuda=None, module=types.SimpleNamespace(Tensor=Tensor), table=table, frames=lambda n: [("f", "train.py", n)])
graphs = _graph.Graphs(agent, source)
graphs.found([(p, p.path(), ends[name], 6) for name, p in places.items()])
def look(what):
    snapshot = _agent.Snapshot()
    table[log.tensors["total"].storage._cdata] = [7, 4, 0, 1, 0]
    graphs.fill(snapshot, _walk.key_text)
    told = [(h["path"][len("__main__.log.tensors"):], h["items"], snapshot.stacks.stacks[h["stack"]] != []) for h in snapshot.holders]
    print(what, *told, *(["of", *snapshot.blocks["count"]] if told else []), graphs.grow())

look("the same")
for _ in range(5):
    step()
look("five later")
step()
look("one later")
look("none later")
ends["total"] = Node(loss())
step()
look("begun anew")
log.tensors["mean"].grad_fn = None
look("let go")
del log.tensors["first"]
look("out of reach")

class Endless(Node):
    def __init__(self, number):
        self.number = number
    @property
    def next_functions(self):
        return [(Endless(self.number - 1), 0)]
print(_graph.since(Endless(10**9), 10**9 - 50, 1e9), _graph.since(Endless(10**9), 1, 1e9)[1], _graph.since(Endless(10**9), 1, 0))
graphs.budget.spent = 2
look("too dear")

# A sum at a place of a list, as a walk finds it: state[0] += loss.
state = [Tensor(loss()), 1]
walk = _walk.Walk(types.SimpleNamespace(Tensor=Tensor), {}, {})
walk.tensor_ = lambda t, node: found.append(node)
found = []
walk.visit(state, _walk.Node(_walk.Node(None, "__main__"), ".state", "variable"))
walk.follow()
graphs = _graph.Graphs(agent, source)
graphs.found([(found[0], found[0].path(), state[0].grad_fn, 6)])
for _ in range(2):
    state[0].grad_fn = Node(state[0].grad_fn, loss())
    snapshot = _agent.Snapshot()
    graphs.fill(snapshot, _walk.key_text)
print("in a list", *((h["path"], h["items"]) for h in snapshot.holders))

# PyTorch warns if the address of a fake tensor's memory is read.
table.clear()
source.cuda = types.SimpleNamespace(blocks=types.SimpleNamespace(frames=lambda pointer: [("f", "train.py", pointer)]))
Storage.data_ptr = lambda self: print("address on", self.device.type) or 7
for device in "meta", "cuda":
    Storage.device = types.SimpleNamespace(type=device)
    state[0].grad_fn = Node(state[0].grad_fn, loss())
    snapshot = _agent.Snapshot()
    graphs.fill(snapshot, _walk.key_text)
    print(device, *(h["items"] for h in snapshot.holders))
`

func TestWhatHasComeToAGraphIsCounted(t *testing.T) {
	t.Parallel()
	agentProgram(t, carried, `the same False
five later ("['total']", 11, True) ("['mean']", 16, False) ("['first']", 11, False) of 11 16 11 True
one later ("['total']", 12, True) ("['mean']", 18, False) ("['first']", 12, False) of 12 18 12 True
none later ("['total']", 12, True) ("['mean']", 18, False) ("['first']", 12, False) of 12 18 12 True
begun anew ("['total']", 8, True) ("['mean']", 20, False) ("['first']", 13, False) of 8 20 13 True
let go ("['total']", 8, True) ("['first']", 13, False) of 8 13 True
out of reach ("['total']", 8, True) of 8 True
(50, True) None (32, None)
too dear True
in a list ('__main__.state[…]', 8)
meta 9
address on cuda
cuda 10
`)
}
