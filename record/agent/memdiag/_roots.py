"""The roots of a walk: names of the program's own code, Python's registries, and the names of libraries."""

import collections
import gc
import sys
import types
from _weakref import ref as weak_reference
from functools import _lru_cache_wrapper as lru_cache_wrapper

from ._clock import work
from ._frames import back, current
from ._length import FRAMES, OPTIMIZED, SUSPENDED, contents, locals_of, members, module_of
from ._objects import of_types
from ._places import Node

# Names in a module that Python puts there; they lead to much that is not the program's.
SYSTEMS = {"__builtins__", "__spec__", "__loader__"}
# The types of registries, by their ids.
KEEPERS = set(map(id, (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict, lru_cache_wrapper)))
# The module of the function that a loader's worker runs. With spawn and forkserver, which create __mp_main__, only its variables hold the
# dataset.
LOADER = "torch.utils.data._utils.worker"
# Seconds for learning which registries there are, after one walk.
LEARN = 0.05


class Roots:
    """Pushes the roots of a walk; each method pushes some of them."""

    registered = None  # a Registries, or None

    def variable(self, v, node, label):
        """Follows what a variable of the program has. An object made in the window, or one that the variable has in this step only, may soon be
        freed. It comes later, so that another holder is named if there is one."""
        if self.near and ((node.label, label) in self.passing or self.came(v)):
            self.later.append((v, node, label, "variable"))
        else:
            self.push(v, node, label, "variable")

    def programs(self):
        """The names of the program's own code."""
        self.running()
        here = __name__.rpartition(".")[0]
        for name, module in list(sys.modules.items()):
            if is_programs(module) and name != "__main__" and not name.startswith(here):
                self.module(name, module)

    def running(self):
        """The names of its main module and of the functions that run."""
        main = sys.modules.get("__main__")
        here = __name__.rpartition(".")[0]
        if main is not None:
            self.module("__main__", main)
        for frame in reversed(list(current().values())):  # the main thread first
            frames = []
            while frame is not None:
                frames.append(frame)
                frame = back(frame)
            for frame in reversed(frames):  # so an object gets the name that the outermost function gives it
                name = frame.f_globals.get("__name__", "")
                if frame.f_code.co_flags & OPTIMIZED and (name == LOADER and "__mp_main__" in sys.modules or not (type(name) is str and name.startswith((here, "torch.", "importlib.", "threading")))):
                    self.frame(frame, Node(None, getattr(frame.f_code, "co_qualname", frame.f_code.co_name) + ".<locals>"))
            # This function's own frame is among them. That cycle would keep the locals of the program's functions alive until the next garbage
            # collection.
            frames.clear()
            frame = None
            if self.over():
                break

    def registries(self):
        """Python's registry of finalizers, and the registries of libraries that have grown. They come before the many names of libraries."""
        if "weakref" in sys.modules:
            self.push(sys.modules["weakref"].finalize, Node(None, "weakref"), ".finalize")
        for node, obj in self.registered.grown() if self.registered else ():
            self.push(obj, node.parent, node.label, "variable")

    def suspended(self):
        """Suspended functions that nothing with a name holds, such as the generator of a loop."""
        for obj in of_types(SUSPENDED, gc.get_objects):
            if id(obj) not in self.seen:
                frame = getattr(obj, FRAMES[id(type(obj))])
                if frame is not None:
                    self.seen.add(id(obj))
                    node = Node(None, obj.__qualname__ + ".<locals>")
                    node.waits = weak_reference(obj)
                    self.frame(frame, node)

    def libraries(self):
        here = __name__.rpartition(".")[0]
        for name, module in list(sys.modules.items()):
            if self.late():
                return
            if name != "__main__" and not name.startswith(here) and not is_programs(module):
                self.module(name, module)

    def module(self, name, module):
        if not issubclass(type(module), types.ModuleType) or id(module) in self.seen:
            return  # seen: multiprocessing has the main module under two names
        self.seen.add(id(module))
        names = contents(module)
        self.seen.add(id(names))
        node = Node(None, name)
        for k, v in list(names.items()):
            if type(k) is not str or k not in SYSTEMS:
                self.variable(v, node, named(k))

    def frame(self, frame, node):
        for k, v in locals_of(frame).items():
            self.variable(v, node, "." + k)


class Registries:
    """The containers at names of libraries' modules and classes, such as matplotlib's open figures. Only their places and lengths are stored,
    and no references."""

    def __init__(self):
        self.modules = set()
        self.lengths = {}  # by module, class or "", and name: the first length

    def learn(self, seconds=LEARN):
        """Reads modules that it has not read before, for so many seconds."""
        begun = work()
        here = __name__.rpartition(".")[0]
        for name, module in list(sys.modules.items()):
            if name in self.modules or name == "__main__" or name.startswith(here) or not issubclass(type(module), types.ModuleType):
                continue
            if work() - begun > seconds:
                return
            self.modules.add(name)
            if not is_programs(module):  # walks go through the program's own modules
                for owner, k, v in containers(name, module):
                    self.lengths[name, owner, k] = length(v)

    def grown(self, least=1):
        """Yields the place and the object of each container that has at least so many items more than at first."""
        for (name, owner, k), first in self.lengths.items():
            module = sys.modules.get(name)
            if issubclass(type(module), types.ModuleType):
                names = contents(module)
                if owner:
                    holder = names.get(owner)
                    names = members(holder) if issubclass(type(holder), type) else {}
                v = names.get(k)
                if id(type(v)) in KEEPERS and length(v) >= first + least:
                    node = Node(None, name)
                    yield Node(Node(node, named(owner)) if owner else node, named(k), "variable"), v


def containers(name, module):
    """Yields the containers at names of a module and of the classes that it defines: the class or "", the name, and the object."""
    seen = set()
    for k, v in list(contents(module).items()):
        if type(k) is not str or k in SYSTEMS:
            continue
        if id(type(v)) in KEEPERS:
            yield "", k, v
        elif issubclass(type(v), type) and id(v) not in seen and home(v) == name:
            seen.add(id(v))
            for field, inner in list(members(v).items()):
                if id(type(inner)) in KEEPERS and type(field) is str and not field.startswith("__"):
                    yield k, field, inner


def home(c):
    """The name of a class's module; "" if the class has something else there."""
    try:
        name = module_of(c)
    except AttributeError:
        return ""
    return name if type(name) is str else ""


def length(v):
    return v.cache_info().currsize if type(v) is lru_cache_wrapper else len(v)


def named(k):
    """The label of the object that a namespace has under a name."""
    return "." + (k if type(k) is str else "…")


def is_programs(module):
    """Whether a module is the program's own: neither installed nor part of Python."""
    f = contents(module).get("__file__") if issubclass(type(module), types.ModuleType) else None
    return type(f) is str and is_programs_file(f)


def is_programs_file(f):
    return "site-packages" not in f and "dist-packages" not in f and "/lib/python3" not in f and not f.startswith("<frozen ")
