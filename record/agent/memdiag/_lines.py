"""Finds the line of the program at which a container becomes longer.

For some steps Python calls us for each line of the program's own. Items that a container has gained since the last line were added by that
line, or by what it called. A container is watched until it has become longer once.
"""

from functools import _lru_cache_wrapper as lru_cache_wrapper

from ._handlers import raised
from ._length import BUFFERS, LISTS, reach
from ._passes import Passes, stack

# Calls and lines that may be watched: so many, and so many more per second. One costs half a microsecond.
ALLOWANCE, A_SECOND = 200_000, 20_000
# Containers that are watched at a time.
SEVERAL = 4


class Lines(Passes):
    def __init__(self, agent, containers, key_text):
        Passes.__init__(self, agent)
        self.containers, self.key_text = containers, key_text
        self.watched, self.lengths = [], []  # for one step: containers with their objects, and their lengths

    def boundary(self):
        """Called between two steps, in the thread that runs them."""
        self.end()
        wanted = [c for c in self.containers.kept if c.stack is None and c.grown][:SEVERAL]
        self.most = ALLOWANCE + A_SECOND * self.agent.elapsed()
        if wanted and self.events < self.most and self.free():
            self.watch(wanted)

    def watch(self, wanted):
        for c in wanted:
            try:
                obj = reach(c.node, self.key_text)
            except Exception as e:
                if raised(e):
                    raise
                continue  # it cannot be reached without a walk
            if id(obj) == c.node.id:
                self.watched.append((c, obj))
        self.lengths = [length(obj) for _, obj in self.watched]
        self.begin()

    def end(self):
        Passes.end(self)
        self.watched, self.lengths = [], []

    def passed(self):
        for i, (c, obj) in enumerate(self.watched):
            now = length(obj)
            if now > self.lengths[i] and c.stack is None and self.at is not None:
                c.stack = stack(*self.at)
            self.lengths[i] = now
        if all(c.stack for c, _ in self.watched):
            self.end()


def length(obj):
    """The number of items of a container. No code of the program is called."""
    if type(obj) is lru_cache_wrapper:
        return obj.cache_info().currsize
    if id(type(obj)) in BUFFERS:
        return BUFFERS[id(type(obj))][1](obj)
    return next(base for base in (dict, *LISTS) if issubclass(type(obj), base)).__len__(obj)
