"""The graphs of autograd's that one of the program's names keeps and that grow, as that of a sum of losses: their nodes
are C++'s, and no tensor's.

A walk finds the name. From then on a snapshot asks what the name has now, and follows the graph behind it down to where it
ended at the snapshot before: only what has come since is counted, and a graph that no longer leads there was let go.
"""

import functools
import heapq

from ._budget import Budget
from ._clock import work
from ._handlers import raised
from ._length import reach

# Graphs that are followed, the largest that a walk counted; and nodes of one that are looked at in a snapshot at most.
MOST, NODES = 4, 200_000
# What that may cost together: so many seconds, and this share of the time since the first step.
ALLOWANCE, SHARE = 0.1, 0.01
# Nodes that add to a parameter's gradient are numbered from here on.
PARAMETERS = 1 << 63


class Graph:
    """One of them: where a walk found the tensor at its end, that tensor's stack, and so many nodes at least."""

    def __init__(self, place, path, end, nodes):
        self.place, self.path, self.nodes = place, path, nodes
        self.end = number(end)
        self.stack = self.frames = None  # the stack's key, and what gives its frames
        self.grown = False


class Graphs:
    def __init__(self, agent, source):
        self.agent, self.source = agent, source
        self.kept = {}  # by path
        self.budget, self.until = Budget(agent, ALLOWANCE, SHARE), 0.0

    def begin_anew(self):
        self.budget.spent = 0.0

    def grow(self):
        """Whether one is known to."""
        return any(g.grown for g in self.kept.values())

    def found(self, graphs):
        """Takes note of what a walk found, each as Graph takes it."""
        for place, path, end, nodes in graphs:
            if len(self.kept) < MOST and path not in self.kept:
                self.kept[path] = Graph(place, path, end, nodes)

    def fill(self, snapshot, key_text):
        """Counts, while autograd rests. Adds those that have been seen to grow: as blocks without a size, by the stack of
        the tensor."""
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
        """Counts what has come to a graph, whose end a tensor is; False where there is none, or that cannot be told."""
        tensor = self.source.module.Tensor
        end = tensor.grad_fn.__get__(t)
        if end is None:
            return False
        storage = tensor.untyped_storage(t)
        entry = self.source.table.get(storage._cdata)
        frames = self.source.cuda.blocks.frames(storage.data_ptr()) if entry is None and self.source.cuda is not None else None
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
    """A node's: it is higher than those of the nodes to which it leads."""
    return f._sequence_nr()


def since(end, before, until):
    """How many nodes lie between the end of a graph and the one that was its end before, or more; and whether that is
    there. Where it is not, all that have been made since. None for the second where there are too many to tell by then."""
    found, seen, ahead = 0, {number(end)}, [(number(end), id(end), end)]
    while ahead:
        # The oldest first: what a graph was carried on from is older than what was added to it.
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
