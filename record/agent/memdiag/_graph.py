"""Follows graphs of autograd that one of the program's names holds and that grow, such as that of a sum of losses. Their nodes are C++ objects
and no tensors.

A walk finds the name. From then on a snapshot reads the tensor at that name, and follows its graph back to where it ended at the snapshot
before. So only new nodes are counted. If the graph no longer leads there, the old one was freed.
"""

import functools
import heapq

from ._budget import Budget
from ._clock import work
from ._handlers import raised
from ._length import reach

# MOST: graphs that are followed, the largest that a walk counted. NODES: nodes of one graph that a snapshot looks at, at most.
MOST, NODES = 4, 200_000
# What all of them may cost: seconds at the start, plus a share of the time since the first step.
ALLOWANCE, SHARE = 0.1, 0.01
# Nodes that accumulate the gradient of a parameter have numbers from here on.
PARAMETERS = 1 << 63


class Graph:
    """A graph that is followed. place and path: where a walk found the tensor at its end. end: that tensor's node. nodes: how many the graph has
    at least."""

    def __init__(self, place, path, end, nodes):
        self.place, self.path, self.nodes = place, path, nodes
        self.end = number(end)
        self.stack = self.frames = None  # of the tensor at the end: the stack's key, and a function that returns its frames
        self.grown = False


class Graphs:
    def __init__(self, agent, source):
        self.agent, self.source = agent, source
        self.kept = {}  # by path
        self.budget, self.until = Budget(agent, ALLOWANCE, SHARE), 0.0

    def begin_anew(self):
        self.budget.spent = 0.0

    def grow(self):
        """Whether a followed graph is known to grow."""
        return any(g.grown for g in self.kept.values())

    def found(self, graphs):
        """Follows graphs that a walk found; each is a tuple of Graph's arguments."""
        for place, path, end, nodes in graphs:
            if len(self.kept) < MOST and path not in self.kept:
                self.kept[path] = Graph(place, path, end, nodes)

    def fill(self, snapshot, key_text):
        """Counts new nodes, while autograd is at rest. Adds the graphs that were seen to grow, as blocks of size 0 with the stack of the
        tensor."""
        begun = work()
        self.until = begun + self.budget.left()
        if not self.kept or self.until < begun:
            return
        for path, g in list(self.kept.items()):
            try:
                known = self.count(g, reach(g.place, key_text))
            except Exception as e:
                if raised(e):
                    raise
                known = False  # it cannot be reached without a walk
            if not known:
                del self.kept[path]
        device = None
        for g in self.kept.values():
            if g.grown:
                device = snapshot.device("graph", "autograd's graph") if device is None else device
                n = 0 if g.stack is None else snapshot.stacks.add(g.stack, g.frames)
                snapshot.add(device, 0, 0, n, -1, g.nodes)
                snapshot.holders.append({"stack": n, "path": g.path, "kind": "nodes", "items": g.nodes})
        self.budget.spent += work() - begun

    def count(self, g, t):
        """Counts the new nodes of a graph with the tensor t at its end. False if t has no graph, or the nodes cannot be counted."""
        tensor = self.source.module.Tensor
        end = tensor.grad_fn.__get__(t)
        if end is None:
            return False
        storage = tensor.untyped_storage(t)
        entry = self.source.table.get(storage._cdata)
        asks = entry is None and self.source.cuda is not None and storage.device.type != "meta"  # PyTorch warns if a fake tensor's address is read
        frames = self.source.cuda.blocks.frames(storage.data_ptr()) if asks else None
        if entry is not None:
            g.stack, g.frames = entry[0], functools.partial(self.source.frames, entry[0])
        elif frames:
            g.stack, g.frames = tuple(frames), lambda: frames
        if number(end) == g.end:
            return True
        nodes, same = since(end, g.end, self.until)
        if same is None:
            return False
        g.nodes, g.end, g.grown = nodes + same * g.nodes, number(end), g.grown or same
        return True


def number(f):
    """The number of a node. It is higher than the numbers of the nodes to which it leads."""
    return f._sequence_nr()


def since(end, before, until):
    """Counts the nodes that were made since a graph had the end before. Returns their number, or more, and whether the graph still leads to that
    end. Without it, all newer nodes are counted. The second is None if there are too many to count until then."""
    found, seen, ahead = 0, {number(end)}, [(number(end), id(end), end)]
    while ahead:
        # heapq yields the oldest first. The node from which a graph was continued is older than what was added.
        n, _, f = heapq.heappop(ahead)
        if n == before:
            return found, True
        found += 1
        if found % 32 == 0 and (found > NODES or work() > until):
            return found, None
        for g, _ in f.next_functions:
            n = PARAMETERS if g is None else number(g)
            if before <= n < PARAMETERS and n not in seen:
                seen.add(n)
                heapq.heappush(ahead, (n, id(g), g))
    return found, False
