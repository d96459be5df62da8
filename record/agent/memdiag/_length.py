"""How many items a container has now that a walk has found before.

Only its place was kept, since a reference would keep the container itself. It is reached again by
the labels of the path, as the walk made them: through dictionaries and slots, by none of the
program's code. What cannot be reached so raises LookupError.
"""

import array
import collections
import gc
import io
import itertools
import operator
import os
import sys
import types
from _thread import _local as threading_local
from functools import _lru_cache_wrapper as lru_cache_wrapper

# What Python calls for lines and calls of the program's, and where that is.
TRACERS = "call", "line", "__call__"
TRACING = tuple(os.path.join(os.path.dirname(__spec__.origin), name) for name in ("_code.py", "_leave.py", "_passes.py"))
OPTIMIZED = 1  # CO_OPTIMIZED: the frame of a function
# Functions that have begun and wait, and where they have their frames.
SUSPENDED = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
FRAMES = {id(t): name for t, name in SUSPENDED.items()}
LISTS = {list: "list", tuple: "tuple", set: "set", frozenset: "set", collections.deque: "deque"}
# What has no items but bytes or characters: the kind, and what says how many it has room for, or how far it was written.
BUFFERS = {id(t): (name, room) for t, name, room in (
    (bytearray, "bytearray", bytearray.__sizeof__), (array.array, "array.array", array.array.__sizeof__),
    (io.BytesIO, "BytesIO", io.BytesIO.__sizeof__), (io.StringIO, "StringIO", io.StringIO.tell))}
# The label of the list in which itertools.cycle has what it saw.
CYCLE = " of itertools.cycle"
# Places of a list that are counted at most.
PLACES = 200_000
# References to a dictionary of locals that nobody has but its frame: the frame's, and two of who asks.
ALONE = 3
# Keys of a dictionary that are compared with a label at most.
KEYS = 400
# What a class and a module have, without asking the program's metaclasses, and modules that it loads when they are asked.
mro, members, module_of = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__module__"))
contents = types.ModuleType.__dict__["__dict__"].__get__


def length(node, key_text):
    """The items of the container at a node. Another one there is not taken for it: a name may be that
    of a loop, which goes through several."""
    obj = reach(node, key_text)
    if id(obj) != node.id:
        raise LookupError("another object is there")
    t = type(obj)
    if t is lru_cache_wrapper:
        return obj.cache_info().currsize
    for base in (*LISTS, dict):
        if issubclass(t, base):
            if node.ring:
                if base.__len__(obj) != node.bound:
                    node.bound = 0  # no place was kept for what comes
                return taken(obj) if node.bound else base.__len__(obj)
            return base.__len__(obj)
    if id(t) in BUFFERS:
        return BUFFERS[id(t)][1](obj)
    raise LookupError("no container")


def reach(node, key_text):
    """What is at a node now."""
    nodes = []
    while node is not None:
        nodes.append(node)
        node = node.parent
    root, name = nodes.pop(), nodes.pop().label[1:]
    obj = waiting(root.waits())[name] if root.waits else scope(root.label, name)
    for node in reversed(nodes):
        obj = follow(obj, node, key_text)
    return obj


maxlen = collections.deque.__dict__["maxlen"].__get__


def taken(c):
    """How many places of a list have something in them, where they are taken from the first on and the last has None;
    0 for other lists. A ring buffer is made so."""
    n = list.__len__(c)
    if not 1 < n <= PLACES or list.__getitem__(c, -1) is not None or list.__getitem__(c, 0) is None:
        return 0
    return sum(map(operator.is_not, list.__iter__(c), itertools.repeat(None)))


def scope(root, name):
    """What a module, or a function that runs, has under a name."""
    if not root.endswith(".<locals>"):
        return contents(sys.modules[root])[name]
    function = root[: -len(".<locals>")]
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            if frame.f_code.co_flags & OPTIMIZED and getattr(frame.f_code, "co_qualname", frame.f_code.co_name) == function:
                return locals_of(frame)[name]
            frame = frame.f_back
    raise LookupError(function)


def waiting(function):
    """The locals of a function that waits; LookupError where it has ended."""
    frame = getattr(function, FRAMES[id(type(function))]) if function is not None else None
    if frame is None:
        raise LookupError("it has ended")
    return locals_of(frame)


def locals_of(frame):
    """The locals of a function that runs, or that an exception has left."""
    copy = dict(frame.f_locals)
    forget(frame)
    return copy


def forget(frame):
    """Before 3.13 reading a function's locals leaves references to them in a dictionary of the frame's, and so does each line
    that is traced from then on. They are taken back, unless the program has got the dictionary by locals(), or a tracer may be at
    work on the frame, at whose end Python takes the locals from there."""
    if frame.f_code.co_flags & OPTIMIZED and sys.gettrace() is None and sys.getprofile() is None and not traced(sys._getframe()):
        names = frame.f_locals
        if type(names) is dict and sys.getrefcount(names) <= ALONE:
            names.clear()


def traced(frame):
    """Whether a frame is one that Python has called for a line or a call of the program's, or is below one."""
    while frame is not None:
        if frame.f_code.co_name in TRACERS and frame.f_code.co_filename in TRACING:
            return True
        frame = frame.f_back
    return False


def defaults(function):
    """The values of a function's arguments that have one, by name."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values)), **(function.__kwdefaults__ or {})}


def follow(obj, node, key_text):
    t, label = type(obj), node.label
    if node.place is not None and issubclass(t, (list, tuple)):
        base = list if issubclass(t, list) else tuple
        if node.place < base.__len__(obj):
            return base.__getitem__(obj, node.place)
    elif label.startswith("["):
        if not issubclass(t, dict) or label == "[…]" or len(obj) > KEYS:
            raise LookupError(label)
        for k in dict.keys(obj):
            if "[%s]" % key_text(k) == label:
                return dict.__getitem__(obj, k)
    elif label.startswith(" closure ") and t is types.FunctionType:
        return obj.__closure__[obj.__code__.co_freevars.index(label[len(" closure "):])].cell_contents
    elif label.startswith(" default ") and t is types.FunctionType:
        return defaults(obj)[label[len(" default "):]]
    elif label == CYCLE and t is itertools.cycle:
        return next(v for v in gc.get_referents(obj) if type(v) is list)
    elif id(t) in FRAMES:
        return waiting(obj)[label[1:]]
    elif label.startswith(".") and t is dict:  # of the parts of an nn.Module
        return obj[label[1:]]
    elif label.startswith("."):
        return attribute(obj, t, label[1:])
    raise LookupError(label)


def attribute(obj, t, name):
    if issubclass(t, type):
        return members(obj)[name]
    d = threading_local.__getattribute__(obj, "__dict__") if t is threading_local else own(obj, dict_of(t))
    if name in d:
        return d[name]
    for c in mro(t):
        member = members(c).get(name)
        if type(member) is types.MemberDescriptorType:
            return member.__get__(obj)
    raise LookupError(name)


def dict_of(t):
    """What reads the dictionary of a type's objects; None where they have none, or the program makes it."""
    found = next((members(c)["__dict__"] for c in mro(t) if "__dict__" in members(c)), None)
    return found if type(found) is types.GetSetDescriptorType else None


def own(obj, d):
    """The dictionary of an object, of whose type dict_of is d; empty where it has none."""
    found = None if d is None else d.__get__(obj)
    return found if type(found) is dict else {}


def once(types, t, find):
    """What find() returns, which is called once for each type."""
    found = types.get(id(t))
    if found is None:
        found = types[id(t)] = find(), t  # which keeps the id its own
    return found[0]
