"""Reads how many items a container has now that a walk has found before.

Only its place is stored, since a reference would keep the container alive. It is reached again by the labels of the path that the walk
made: through dictionaries and slots, and without a call of the program's code. If it cannot be reached this way, LookupError is raised.
"""

import array
import collections
import gc
import io
import itertools
import operator
import sys
import types
from _thread import _local as threading_local
from _thread import get_ident
from functools import _lru_cache_wrapper as lru_cache_wrapper

from ._frames import back, current, variables
from ._tracing import ours, runs, threads

OPTIMIZED = 1  # CO_OPTIMIZED: the frame of a function
# The types of suspended functions, and the attribute that has the frame.
SUSPENDED = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
FRAMES = {id(t): name for t, name in SUSPENDED.items()}
LISTS = {list: "list", tuple: "tuple", set: "set", frozenset: "set", collections.deque: "deque"}
# Types that hold bytes or characters and no items: the kind, and what returns the size, or for StringIO the position.
BUFFERS = {id(t): (name, room) for t, name, room in (
    (bytearray, "bytearray", bytearray.__sizeof__), (array.array, "array.array", array.array.__sizeof__),
    (io.BytesIO, "BytesIO", io.BytesIO.__sizeof__), (io.StringIO, "StringIO", io.StringIO.tell))}
# The label of the list in which itertools.cycle stores its items.
CYCLE = " of itertools.cycle"
# Places of a list that are read at most, to count those that are taken.
PLACES = 200_000
# References to a dictionary of locals that only its frame has: the frame's, and two of the caller.
ALONE = 3
# Keys of a dictionary that are compared with a label, at most.
KEYS = 400
# These read classes and modules without calling a metaclass of the program, and without loading a lazy module.
mro, members, module_of = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__module__"))
contents = types.ModuleType.__dict__["__dict__"].__get__


def length(node, key_text):
    """The number of items of the container at a node. Another object there raises LookupError: a loop's name goes through several
    containers."""
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
                    node.bound = 0  # its length has changed: it is no ring
                return taken(obj) if node.bound else base.__len__(obj)
            return base.__len__(obj)
    if id(t) in BUFFERS:
        return BUFFERS[id(t)][1](obj)
    raise LookupError("no container")


def reach(node, key_text):
    """The object that is at a node now."""
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
    """How many places of a list are taken, if it is filled from the front and its last place is still None, as a new ring buffer is. 0 for
    other lists."""
    n = list.__len__(c)
    if not 1 < n <= PLACES or list.__getitem__(c, -1) is not None or list.__getitem__(c, 0) is None:
        return 0
    return sum(map(operator.is_not, list.__iter__(c), itertools.repeat(None)))


def scope(root, name):
    """The object that a module, or a running function, has under a name."""
    if not root.endswith(".<locals>"):
        return contents(sys.modules[root])[name]
    function = root[: -len(".<locals>")]
    for frame in list(current().values()):
        while frame is not None:
            if frame.f_code.co_flags & OPTIMIZED and getattr(frame.f_code, "co_qualname", frame.f_code.co_name) == function:
                return locals_of(frame)[name]
            frame = back(frame)
    raise LookupError(function)


def waiting(function):
    """The locals of a suspended function; LookupError if it has ended."""
    frame = getattr(function, FRAMES[id(type(function))]) if function is not None else None
    if frame is None:
        raise LookupError("it has ended")
    return locals_of(frame)


def locals_of(frame):
    """The locals of a function that runs, or that an exception has ended."""
    copy = dict(variables(frame))
    forget(frame)
    return copy


def forget(frame):
    """Removes what reading a function's locals leaves behind. Before 3.13 the frame then has a dictionary that refers to them, and each traced
    line fills it, too. It stays if the program has it from locals(), or while a tracer may work on the frame: when that ends, Python reads
    the locals from there."""
    if (frame.f_code.co_flags & OPTIMIZED and sys.gettrace() is None and sys.getprofile() is None and ours(frame.f_trace)
            and not runs(sys._getframe()) and not hooked()):
        names, mine, traced = variables(frame), {get_ident()}, threads()
        # No call between the check of traced and the clearing: Python would let another thread run, which may begin to trace.
        if type(names) is dict and sys.getrefcount(names) <= ALONE and traced <= mine:
            names.clear()


def hooked():
    """Whether the program has other threads traced or profiled."""
    threading = sys.modules.get("threading")
    return any(getattr(threading, name, None) is not None for name in ("_trace_hook", "_profile_hook"))


def defaults(function):
    """The default values of a function's arguments, by name."""
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
    elif label.startswith(".") and t is dict:  # the parts of an nn.Module
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
    """The descriptor that reads the dictionary of a type's objects; None if they have none, or the program defines it."""
    found = next((members(c)["__dict__"] for c in mro(t) if "__dict__" in members(c)), None)
    return found if type(found) is types.GetSetDescriptorType else None


def own(obj, d):
    """The dictionary of an object; empty if it has none. d is dict_of its type."""
    found = None if d is None else d.__get__(obj)
    return found if type(found) is dict else {}


def once(types, t, find):
    """The result of find(), which is called once for each type."""
    found = types.get(id(t))
    if found is None:
        found = types[id(t)] = find(), t  # the reference to t keeps its id unique
    return found[0]
