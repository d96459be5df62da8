"""Containers that become longer while the process grows by what nothing that is recorded takes, as open figures do.

Two walks find them: in the second they have more items than in the first. From then on each snapshot has their lengths,
and what one of their newest items takes, as far as Python can tell.
"""

import collections
import gc
import io
import math
import sys
import types

from ._handlers import raised
from ._length import BUFFERS, LISTS, PLACES, contents, length, lru_cache_wrapper, maxlen, mro, reach

# So many items more make a container one that grows; so many are followed, and so many that a walk found are weighed.
LEAST, MOST, WEIGHED = 4, 16, 64
# Objects that belong to one item, at most, and kinds of objects that belong to none.
OBJECTS = 2000
# Bytes of a tensor beside its storage.
HANDLE = 600
SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)
# Types whose own code says what an object takes. Objects of the program's classes take what their base does and what they
# refer to; what others have of C's is not known.
SIZED = {id(t): t.__sizeof__ for t in (
    list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, bool, type(None), range, slice,
    collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, types.MethodType, types.CellType)}
KNOWN = SIZED.keys() | {id(object)}
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
flags = type.__dict__["__flags__"].__get__


class Container:
    """One that is followed: its place, the number of its device, and what an item takes, 0 where that is not known. Whether it
    has become longer since, the stack that was seen to make it so, and whether one of the program's own names leads to it."""

    grown, stack = False, None

    def __init__(self, node, number, each, own):
        self.node, self.number, self.each, self.own, self.path, self.items = node, number, each, own, node.path(), node.items


class Containers:
    next = 0  # the step from which registries are asked again
    listed, grown = False, ()  # whether what has grown is listed: path, kind, items at first and now, whether a name is near

    def __init__(self, bound, key_text):
        self.bound, self.key_text = bound, key_text
        self.first = {}  # items by id, as a walk found them first
        self.kept = []
        self.number = 0

    def found(self, nodes):
        """Takes note of what a walk found, and follows what has become longer."""
        grown = [(n, None, own) for n, own in nodes if n.items - self.first.get(n.id, n.items) >= LEAST]
        self.first = {n.id: self.first.get(n.id, n.items) for n, _ in nodes}
        self.grown = [(n.path(), n.kind, self.first[n.id], n.items, own) for n, _, own in grown] if self.listed else ()
        self.follow(grown[:WEIGHED])

    def follow(self, places):
        """Follows those of these containers whose items take most, and those of whose items that is not known."""
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
        """Adds the lengths: as blocks without a size, each container's on a device of its own, by a stack that has its name. Those
        that the program has a name for come first."""
        for c in sorted(self.kept, key=lambda c: not c.own):
            try:
                now = length(c.node, self.key_text)
            except Exception as e:
                if raised(e):
                    raise
                now = -1  # it cannot be reached without a walk
            if now < c.items:
                self.kept.remove(c)  # what lets go of items does not hold all that grows
                continue
            c.items, c.grown = now, c.grown or now > c.items
            stack = snapshot.stacks.add(("items", c.number), lambda c=c: [(c.path, "", 0)])
            snapshot.add(snapshot.device("items", "", index=c.number), 0, 0, stack, -1, now)
            h = {"stack": stack, "path": c.path, "kind": c.node.kind, "items": now, "each": c.each, "from": c.stack and snapshot.stacks.add(("from", *c.stack), lambda c=c: c.stack) or 0}
            bound = self.bound(c.path, (c.node,))
            snapshot.holders.append({**h, "bound": bound} if bound else h)


def described(c):
    """Kind, items and bound of a container that no walk has seen; the bound is 0 where there is none."""
    if type(c) is lru_cache_wrapper:
        about = c.cache_info()
        return "cache", about.currsize, about.maxsize or 0
    if id(type(c)) in BUFFERS:
        kind, room = BUFFERS[id(type(c))]
        return kind, room(c), 0
    kind = next((LISTS[base] for base in LISTS if issubclass(type(c), base)), "dict")
    return kind, len(c), kind == "deque" and maxlen(c) or 0


def weight(container):
    """Bytes that the newest item of a container takes beside what the one before refers to as well; 0 where that is not known."""
    if id(type(container)) in BUFFERS:
        return 2 if type(container) is io.StringIO else 1  # a character takes one to four; one that is read is longer, too, and takes nothing
    seen, size = {id(container)}, 0
    items = newest(container)
    for item in items:
        size = taken(item, seen)
        if size is None:
            return 0
    return size if len(items) > 1 else 0


def newest(c):
    """The last item but one of a container, and the last: of a dictionary with their keys. A set's order says nothing."""
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
    """The items of NumPy's array of Python's objects that are not None, and how many there are. Of a large array one
    place in so many is read."""
    apart = 1 + array.size // PLACES
    found = [v for v in map(array.flat.__getitem__, range(0, array.size, apart)) if v is not None]
    return found, len(found) * apart


def taken(obj, seen):
    """Bytes of an object and of what it refers to and has not been seen; None where they are not known."""
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
