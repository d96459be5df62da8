"""Finds containers that become longer while the process grows by more than the records explain, such as open figures.

Two walks find them: a container grows if it has more items in the second than in the first. From then on each snapshot has its length,
and the size of one of its newest items, as far as Python knows it.
"""

import collections
import gc
import io
import math
import sys
import types

from ._handlers import raised
from ._length import BUFFERS, LISTS, PLACES, contents, length, lru_cache_wrapper, maxlen, mro, reach

# LEAST: a container with so many more items grows. MOST: how many are followed. WEIGHED: for how many of a walk the size of an item is
# measured, to choose these.
LEAST, MOST, WEIGHED = 4, 16, 64
# Objects of one item, at most. SHARED, below: types of objects that belong to no item.
OBJECTS = 2000
# Bytes of a tensor without its storage.
HANDLE = 600
SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)
# Types whose own code returns the size of an object. An object of a class of the program takes what its base takes, and what it refers to.
# What other types of C take is unknown.
SIZED = {id(t): t.__sizeof__ for t in (
    list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, bool, type(None), range, slice,
    collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, types.MethodType, types.CellType)}
KNOWN = SIZED.keys() | {id(object)}
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
flags = type.__dict__["__flags__"].__get__


class Container:
    """A container that is followed. number: of its device. each: the size of an item; 0 if unknown. own: whether one of the program's own names
    leads to it. grown: whether it has become longer since. stack: the call stack that was seen to make it longer."""

    grown, stack = False, None

    def __init__(self, node, number, each, own):
        self.node, self.number, self.each, self.own, self.path, self.items = node, number, each, own, node.path(), node.items


class Containers:
    next = 0  # the step at which registries are read again
    listed, grown = False, ()  # whether to list what has grown: path, kind, items at first and now, whether a name of the program's leads to it

    def __init__(self, bound, key_text):
        self.bound, self.key_text = bound, key_text
        self.first = {}  # by id: the items that the first walk found
        self.kept = []
        self.number = 0

    def found(self, nodes):
        """Notes the containers that a walk found, and follows those that have become longer."""
        grown = [(n, None, own) for n, own in nodes if n.items - self.first.get(n.id, n.items) >= LEAST]
        self.first = {n.id: self.first.get(n.id, n.items) for n, _ in nodes}
        self.grown = [(n.path(), n.kind, self.first[n.id], n.items, own) for n, _, own in grown] if self.listed else ()
        self.follow(grown[:WEIGHED])

    def follow(self, places):
        """Follows those of these containers that take most, and those with items of unknown size."""
        known = {c.node.id for c in self.kept}
        for node, obj, own in places:
            try:
                obj = reach(node, self.key_text) if obj is None else obj
                if id(obj) in known:
                    continue
                if not node.id:
                    node.id, node.kind, node.items, node.bound = id(obj), *described(obj)
                self.kept.append(Container(node, self.number, weight(obj), own))
                self.number += 1
            except Exception as e:
                if raised(e):
                    raise
                # It cannot be reached without a walk.
        self.kept.sort(key=lambda c: c.each * c.items or math.inf, reverse=True)
        del self.kept[MOST:]

    def fill(self, snapshot):
        """Adds the lengths, as blocks of size 0. Each container has its own device, and a stack with its path. Those that the program has a
        name for come first."""
        for c in sorted(self.kept, key=lambda c: not c.own):
            try:
                now = length(c.node, self.key_text)
            except Exception as e:
                if raised(e):
                    raise
                now = -1  # it cannot be reached without a walk
            if now < c.items:
                self.kept.remove(c)  # a container that loses items does not hold all that grows
                continue
            c.items, c.grown = now, c.grown or now > c.items
            stack = snapshot.stacks.add(("items", c.number), lambda c=c: [(c.path, "", 0)])
            snapshot.add(snapshot.device("items", "", index=c.number), 0, 0, stack, -1, now)
            h = {"stack": stack, "path": c.path, "kind": c.node.kind, "items": now, "each": c.each, "from": c.stack and snapshot.stacks.add(("from", *c.stack), lambda c=c: c.stack) or 0}
            bound = self.bound(c.path, (c.node,))
            snapshot.holders.append({**h, "bound": bound} if bound else h)


def described(c):
    """Kind, items and bound of a container that no walk has seen; the bound is 0 if there is none."""
    if type(c) is lru_cache_wrapper:
        about = c.cache_info()
        return "cache", about.currsize, about.maxsize or 0
    if id(type(c)) in BUFFERS:
        kind, room = BUFFERS[id(type(c))]
        return kind, room(c), 0
    kind = next((LISTS[base] for base in LISTS if issubclass(type(c), base)), "dict")
    return kind, len(c), kind == "deque" and maxlen(c) or 0


def weight(container):
    """Bytes of a container's newest item, without what the item before it refers to as well; 0 if unknown."""
    if id(type(container)) in BUFFERS:
        return 2 if type(container) is io.StringIO else 1  # a character takes one to four; reading moves the position, too, and takes none
    seen, size = {id(container)}, 0
    items = newest(container)
    for item in items:
        size = taken(item, seen)
        if size is None:
            return 0
    return size if len(items) > 1 else 0


def newest(c):
    """The last two items of a container, for a dictionary with their keys. Empty for a set, whose order shows nothing."""
    t = type(c)
    if issubclass(t, dict):
        items = dict.items(c).__reversed__()
    elif issubclass(t, list):
        items = list.__reversed__(c)
    elif issubclass(t, collections.deque):
        items = collections.deque.__reversed__(c)
    else:
        items = ()
    return [item for item, _ in zip(items, range(2))][::-1]


def objects_of(array):
    """The items of a NumPy array of Python objects that are not None, and how many there are. In a large array only one place in so many
    is read."""
    apart = 1 + array.size // PLACES
    found = [v for v in map(array.flat.__getitem__, range(0, array.size, apart)) if v is not None]
    return found, len(found) * apart


def taken(obj, seen):
    """Bytes of an object and of all that it refers to, without what was seen before; None if unknown."""
    size, objects = 0, [obj]
    tensor, ndarray, generic = (contents(sys.modules[module]).get(name, ()) if module in sys.modules else () for module, name in (
        ("torch", "Tensor"), ("numpy", "ndarray"), ("numpy", "generic")))
    for obj in objects:
        t = type(obj)
        if id(obj) in seen or issubclass(t, SHARED):
            continue
        seen.add(id(obj))
        if len(objects) > OBJECTS:
            return None
        if tensor and issubclass(t, tensor) and tensor.grad_fn.__get__(obj) is None:
            size += HANDLE  # its storage is recorded itself
            continue
        if ndarray and t is ndarray:
            objects.append(obj.base)
            size += ndarray.__sizeof__(obj)
        elif generic and issubclass(t, generic):
            size += generic.__sizeof__(obj)
        elif id(t) in SIZED:
            size += SIZED[id(t)](obj)
        elif all(id(base) in KNOWN or flags(base) & HEAP_TYPE for base in mro(t)):
            size += object.__sizeof__(obj)
        else:
            return None
        objects.extend(gc.get_referents(obj))
    return size
