//go:build unix

package record_test

import "testing"

// changed has what a program holds changed between its steps; nodes stand in for tensors.
const changed = `
import collections, functools, gc, sys, types
from memdiag import _intervention

class Tensor:
    def __init__(self, grad_fn=None):
        self.grad_fn = grad_fn
    def detach(self):
        return Tensor()
    def detach_(self):
        self.grad_fn = None
class Link:
    __slots__ = ("previous",)
    def __init__(self, previous):
        self.previous = previous
class Broken(dict):
    def __delitem__(self, key):
        raise KeyError
    pop = __delitem__
class Counting(list):  # which counts for itself, and takes nothing back
    def __len__(self):
        raise RuntimeError("counted")
    __getitem__ = __setitem__ = __delitem__ = __len__
torch = types.SimpleNamespace(module=types.SimpleNamespace(Tensor=Tensor))

class Log:
    pass
log, log2, total = Log(), Log(), Tensor("graph")
log.rows, log.losses, log._forward_hooks = [1, 2], [], collections.OrderedDict({1: "first"})
log.by_name, log.recent, log.seen, log.maps = Broken(a=1, b=2), collections.deque([1, 2]), {1, 2}, {"x": [1, 2], "y": [1, 2]}
newest = Link(Link(None))
@functools.lru_cache
def cached(i):
    return str(i)
cached(0)

def intervention(kind, path, start=5):
    agent = types.SimpleNamespace(torch=torch, step=0, number=0, batches=None, settings={"intervention": {"kind": kind, "path": path, "from": start}}, jax=None, elapsed=lambda: 0, ran=lambda: 0, now=lambda: 1000.0 + agent.step)
    return _intervention.Intervention(agent, {"kind": kind, "path": path, "from": start})
def run(i, each, steps=20):
    for i.agent.step in range(1, steps):
        each(i.agent.step)
        i.act()
    about = i.about()
    print(i.kind, i.path, about["found"], about["since"], about["acts"], about["changed"], about["failed"], end=": ")
    return i

run(intervention("cap", "__main__.log.rows"), lambda n: log.rows.append(n))
print(log.rows)
run(intervention("cap", "__main__.log.by_name"), lambda n: dict.__setitem__(log.by_name, n, n))
print(*log.by_name)
run(intervention("cap", "__main__.log.recent"), log.recent.append)
print(*log.recent)
run(intervention("cap", "__main__.log.seen"), log.seen.add)
print(len(log.seen))
run(intervention("cap", "__main__.log.maps['x'] and 1 more like it"), lambda n: [m.append(n) for m in log.maps.values()])
print(log.maps)
run(intervention("cap", "__main__.cached"), cached)
print(cached.cache_info().currsize)
run(intervention("clear", "__main__.log.recent"), log.recent.append)
print(*log.recent)
run(intervention("unhook", "__main__.log._forward_hooks"), lambda n: log._forward_hooks.update({n: "new"}))
print(*log._forward_hooks)
def keep(n):
    log.losses.append((n, Tensor("graph")))
run(intervention("detach", "__main__.log.losses"), keep)
print({t.grad_fn for _, t in log.losses})
class Sized(Tensor):
    dtype = device = None
    def __init__(self, *shape):
        self.shape = shape
log.pairs, log.last = [], {}
run(intervention("share", "__main__.log.pairs"), lambda n: log.pairs.append((n, Sized(n % 2))))
print(len(log.pairs), len({id(t) for _, t in log.pairs}))
run(intervention("share", "__main__.log.last"), lambda n: log.last.setdefault(n, Sized(3)))
print(len(log.last), len(set(map(id, log.last.values()))))
log.counted = Counting()
run(intervention("share", "__main__.log.counted"), lambda n: list.append(log.counted, Sized(3)))
print(list.__len__(log.counted), len(set(map(id, list.__iter__(log.counted)))))
run(intervention("detach", "__main__.total"), lambda n: setattr(total, "grad_fn", n))
print(total.grad_fn)
def link(n):
    global newest
    newest = Link(newest)
run(intervention("cut", "__main__.newest.previous…"), link)
print(_intervention.links(newest, "previous"))
def ring(n):
    one = Log()
    one.self = one
gc.disable(), gc.collect()
i = run(intervention("collect", ""), ring)
print()
run(intervention("cap", "__main__.gone"), lambda n: None)
print()
run(intervention("cap", "__main__.log.rows", 99), lambda n: None)
print()
log.rows = frozenset({1, 2})
i = run(intervention("cap", "__main__.log.rows"), lambda n: setattr(log, "rows", log.rows | {n}))
print()
print(i.text())
i = intervention("count", "")
run(i, lambda n: None)
print()
i.agent.number, i.agent.step = 1, 0  # a loader's worker, of which the change is not asked
i = run(i.forked(), lambda n: None)
i.child, i.agent.step, i.agent.batches = True, 0, [0]
for i.agent.batches[0] in range(1, 20):
    i.act()
print(i.acts)
i = intervention("collect", "")
i.agent.ran = lambda: 6.0  # seconds, most of which the program waited
i.act()
print(i.acts)
`

func TestWhatAProgramHoldsIsChanged(t *testing.T) {
	t.Parallel()
	agentProgram(t, changed, `cap __main__.log.rows True 1005.0 15 14 : [13, 14, 15, 16, 17, 18, 19]
cap __main__.log.by_name True 1005.0 15 14 : 13 14 15 16 17 18 19
cap __main__.log.recent True 1005.0 15 14 : 13 14 15 16 17 18 19
cap __main__.log.seen True 1005.0 15 14 : 5
cap __main__.log.maps['x'] and 1 more like it True 1005.0 15 28 : {'x': [13, 14, 15, 16, 17, 18, 19], 'y': [13, 14, 15, 16, 17, 18, 19]}
cap __main__.cached True 1005.0 15 20 : 0
clear __main__.log.recent True 1005.0 15 26 : 
unhook __main__.log._forward_hooks True 1005.0 15 14 : 1 2 3 4 5
detach __main__.log.losses True 1005.0 15 19 : {None}
share __main__.log.pairs True 1005.0 15 12 : 19 7
share __main__.log.last True 1005.0 15 13 : 19 6
share __main__.log.counted True 1005.0 15 13 : 19 6
detach __main__.total True 1005.0 15 15 : None
cut __main__.newest.previous… True 1005.0 15 14 : 7
collect  True 1005.0 15 19 : 
cap __main__.gone False 0.0 15 0 : 
cap __main__.log.rows False 0.0 0 0 : 
cap __main__.log.rows True 1005.0 2 0 TypeError: a frozenset cannot be cut: 
memdiag doctor changed this run: cap of __main__.log.rows, given up after TypeError: a frozenset cannot be cut
count  True 1005.0 15 0 : 
count  False 0.0 0 0 : 15
1
`)
}
