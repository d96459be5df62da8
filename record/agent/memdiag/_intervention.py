"""Changes one thing between the steps of a program, as memdiag doctor asks, to see whether that ends a leak.

Nothing here runs unless the settings ask for it. An error is reported, and ends the intervention.
"""

import collections
import gc
import itertools
import random
import sys

from ._census import unasked
from ._clock import work
from ._handlers import raised
from ._length import attribute, dict_of, lru_cache_wrapper, members, mro, own, reach
from ._real import time
from ._roots import Registries
from ._switches import Switches
from ._walk import Walk, key_text

# Seconds of one search for what to change. The next search comes when the steps, or the time, are so many times as many.
SECONDS, AGAIN = 2.0, 1.3
# Seconds between two changes if no steps count.
APART = 0.1
# ALIKE: how a path to several similar containers ends. CHAIN: how a path to a chain of objects ends.
ALIKE, CHAIN = " more like it", "…"
# Objects of a chain that are counted, at most.
LINKS = 100_000
# TYPES: types of objects that are reported. FEWEST and EACH: how many more of a type there must be, in all and per step.
TYPES, FEWEST, EACH = 5, 20, 0.5
# Items of a container that are looked at in each step: the newest. The first time, all.
NEWEST = 256


class Intervention:
    """kind is what to do: "collect", "release", "seed", "count", "switch", "cap", "clear", "share", "cut", "detach" or "unhook". start is
    the first step, or second. path leads to the holder; for "switch" it lists what to turn off."""

    def __init__(self, agent, about):
        self.agent = agent
        self.kind, self.path, self.start = about["kind"], about["path"], float(about["from"])
        self.child = about.get("child", False)  # it is for processes recorded beside the one of their rank
        self.nodes, self.next = [], 0.0  # where the path leads, and when to search again
        self.keep, self.hooks = {}, {}  # by path: how many items stay, and the hooks that were there before
        self.alike = {}  # by likeness: the tensor that replaces similar ones
        self.known = set()  # containers whose older items were looked at already
        self.found, self.acts, self.changed, self.failed = False, 0, 0, ""
        self.since, self.due = 0.0, 0.0  # when it was first done; without steps, when to do it next
        self.states = None  # states of the random number generators when it was first done
        self.types, self.grown, self.counted = None, {}, 0.0  # objects by type at first; how many more there are; when to count again
        self.switches = Switches(agent, self.path.split(",")) if self.kind == "switch" else None

    def now(self):
        batches = self.agent.batches  # a loader's worker takes no steps
        return batches[0] if batches else self.agent.step or self.agent.ran()  # the run counts seconds in the same way: a service mostly waits

    def act(self):
        """Called through guarded: between two steps or, if no steps count, now and then."""
        self.due = time.monotonic() + APART
        if self.failed or self.child != (self.agent.number > 0) or self.now() < self.start:
            return
        try:
            if self.kind == "switch":
                self.found, self.changed = True, self.switches.used
            elif self.kind in ("collect", "release", "seed", "count"):
                self.found = True
                with unasked(self.agent.torch.module):
                    self.changed += {"collect": gc.collect, "release": self.release, "seed": self.seed, "count": self.count}[self.kind]()
            else:
                with unasked(self.agent.torch.module):
                    self.on_holders()
        except Exception as e:
            if raised(e):
                raise
            self.failed = "%s: %s" % (type(e).__name__, str(e)[:200])
        self.acts += 1
        if self.found and not self.since:
            self.since = self.agent.now()

    def forked(self):
        """In the child of a fork, nothing was found or done yet. What is turned off stays off."""
        return self if self.switches is not None else Intervention(self.agent, self.agent.settings["intervention"])

    def imported(self, torch):
        """PyTorch has been imported. Called through guarded."""
        if self.switches is not None:
            self.switches.off(torch)
            self.found, self.since, self.acts = True, self.agent.now(), 1

    def release(self):
        """Makes allocators return free memory to the system. Returns whether any did."""
        import ctypes

        torch = self.agent.torch.module
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            before = torch.cuda.memory_reserved()
            torch.cuda.empty_cache()
            return before > torch.cuda.memory_reserved()
        return ctypes.CDLL(None).malloc_trim(0)

    def seed(self):
        """Makes each step draw the same random numbers, so that random data do not differ between steps."""
        torch, numpy = self.agent.torch.module, sys.modules.get("numpy")
        now = random.getstate(), numpy and numpy.random.get_state(), torch and torch.get_rng_state()
        self.states = self.states or now
        random.setstate(self.states[0])
        if self.states[1]:
            numpy.random.set_state(self.states[1])
        if self.states[2] is not None:
            torch.set_rng_state(self.states[2])
        return 1

    def count(self):
        """Counts objects by type from time to time."""
        if self.now() < self.counted:
            return 0
        self.counted = self.now() * AGAIN
        types = list(map(type, gc.get_objects()))  # within C, so that no other thread sees the list of all objects
        numbers = collections.Counter(types)
        if self.types is None:
            self.types, self.first = numbers, self.now()
        least = max(FEWEST, EACH * (self.now() - self.first))
        self.grown = {t: n - self.types[t] for t, n in numbers.items() if n - self.types[t] >= least and t is not tuple}  # the recorder makes tuples, too
        return 0

    def on_holders(self):
        objects = self.reached()
        if not objects and self.now() >= self.next:
            self.next = self.now() * AGAIN
            self.nodes = Seek(self.agent, self.path).seek()
            objects = self.reached()
        for path, obj in objects:
            self.found = True
            if self.kind in ("cap", "clear"):
                most = self.keep.setdefault(path, max(1, length(obj)))
                self.changed += cap(obj, most if self.kind == "cap" else 0)
            elif self.kind == "share":
                self.changed += exchange(obj, older(obj, self.keep.setdefault(path, max(1, length(obj))), NEWEST), self.agent.torch.module.Tensor, self.first)
            elif self.kind == "cut":
                name = self.nodes[0].label[1:]
                self.changed += cut(obj, name, self.keep.setdefault(path, max(1, links(obj, name))))
            elif self.kind == "unhook":
                self.changed += unhook(obj, self.hooks.setdefault(path, set(obj)))
            else:
                self.changed += self.detach(obj)

    def reached(self):
        out = []
        for node in self.nodes:
            try:
                out.append((node.path(), reach(node, key_text)))
            except Exception as e:
                if raised(e):
                    raise
                # It will be searched for again.
        return out

    def detach(self, obj):
        """Detaches a tensor, or the tensors in a container, from their graph."""
        tensor = self.agent.torch.module.Tensor
        if issubclass(type(obj), tensor):
            if obj.grad_fn is None:
                return 0
            obj.detach_()
            return 1
        most = NEWEST if id(obj) in self.known else sys.maxsize
        self.known.add(id(obj))
        return exchange(obj, newest(obj, most), tensor, lambda t: t.detach() if t.grad_fn is not None else t)

    def first(self, t):
        """The first tensor with the same size and kind."""
        return self.alike.setdefault((type(t), tuple(t.shape), t.dtype, t.device), t)

    def about(self):
        most = sorted(self.grown.items(), key=lambda pair: -pair[1])[:TYPES]
        grown = [{"type": "%s.%s" % (t.__module__, t.__qualname__), "more": n} for t, n in most]
        return {"grown": grown, "found": self.found, "since": self.since, "acts": self.acts, "changed": self.changed, "failed": self.failed, "kept": max(self.keep.values(), default=0)}

    def text(self):
        """What was done, for the run's notes; "" if nothing was changed."""
        if self.kind == "count":
            return ""
        what = "memdiag doctor changed this run: %s" % self.kind + (" of " + self.path if self.path else "")
        return what + (", given up after %s" % self.failed if self.failed else ", %d times, %d objects" % (self.acts, self.changed))


class Seek(Walk):
    """A walk that searches for the objects of a path."""

    def __init__(self, agent, path):
        super().__init__(agent.torch.module, {}, {}, quiet=False)
        self.registered = Registries()
        path, alike, _ = path.rpartition(" and ") if path.endswith(ALIKE) else (path, "", "")
        self.path, self.several = path.removesuffix(CHAIN), bool(alike)
        self.end = "." + self.path.rpartition(".")[2] if path.endswith(CHAIN) else ""  # the last part of the path to the first object of a chain
        self.places = []  # containers, tensors and objects that the walk has met

    def seek(self):
        begun = work()
        self.half, self.until = begun + SECONDS / 2, begun + SECONDS
        for roots in self.programs, self.suspended, self.libraries:
            self.near = roots == self.programs
            roots()
            self.follow()
            found = [n for n in self.places if n.path() == self.path]
            if found or self.cut:
                break
        if self.several and found:
            return [n for n in self.places if n.likeness() == found[0].likeness()]
        return found

    def visit(self, obj, node):
        if self.end and node.label == self.end and node.path() == self.path:
            self.places.append(node)
        super().visit(obj, node)

    def container(self, obj, node, kind, items, bound=None):
        most = super().container(obj, node, kind, items, bound)
        self.places.append(node)
        return most

    def tensor_(self, t, node):
        if node.path() == self.path:
            self.places.append(node)
        super().tensor_(t, node)


def length(c):
    return c.cache_info().currsize if type(c) is lru_cache_wrapper else (base(c) or type(c)).__len__(c)


def base(c):
    """Python's own type whose methods change a container. Methods of a subclass are not called."""
    return next((b for b in (collections.OrderedDict, dict, list, collections.deque, set) if issubclass(type(c), b)), None)


def cap(c, most):
    """Removes the oldest items, so that so many stay. Of a cache it removes all, since its oldest are unknown. Returns how many it removed."""
    n, b = length(c), base(c)
    if type(c) is lru_cache_wrapper:
        c.cache_clear()
        return n
    if n <= most:
        return 0
    if b is list:
        list.__delitem__(c, slice(0, n - most))
    elif b is collections.deque:
        for _ in range(n - most):
            collections.deque.popleft(c)
    elif b is set:
        for _ in range(n - most):
            set.pop(c)
    elif b is not None:
        for key in list(itertools.islice(b.keys(c), n - most)):
            b.__delitem__(c, key)
    else:
        raise TypeError("a %s cannot be cut" % type(c).__name__)
    return n - most


def following(obj, name):
    """The object that an attribute of another refers to; None if there is none."""
    try:
        return attribute(obj, type(obj), name)
    except (LookupError, AttributeError):
        return None


def links(obj, name):
    """The number of objects in a chain, in which each has the next as an attribute."""
    n = 0
    while obj is not None and n < LINKS:
        obj, n = following(obj, name), n + 1
    return n


def cut(obj, name, most):
    """Ends a chain after so many objects. Returns whether it was longer."""
    for _ in range(most - 1):
        obj = None if obj is None else following(obj, name)
    if obj is None or following(obj, name) is None:
        return 0
    d = own(obj, dict_of(type(obj)))
    if name in d:
        d[name] = None
    else:
        next(members(c)[name] for c in mro(type(obj)) if name in members(c)).__set__(obj, None)
    return 1


def unhook(c, known):
    """Removes the hooks that were not there before."""
    new = [key for key in dict.keys(c) if key not in known]
    for key in new:
        (collections.OrderedDict if issubclass(type(c), collections.OrderedDict) else dict).__delitem__(c, key)
    return len(new)


def newest(c, most):
    """The newest keys and items of a list, a deque or a dictionary; none of other containers."""
    b = base(c)
    if b in (list, collections.deque):
        n = b.__len__(c)
        return [(i, b.__getitem__(c, i)) for i in range(max(0, n - most), n)]
    if b in (dict, collections.OrderedDict):
        return list(itertools.islice(reversed(b.items(c)), min(most, b.__len__(c))))
    return []


def older(c, most, number):
    """So many keys and items of a list, a deque or a dictionary, from before the newest; none of other containers."""
    b = base(c)
    if b in (list, collections.deque):
        n = b.__len__(c) - most
        return [(i, b.__getitem__(c, i)) for i in range(max(0, n - number), n)]
    if b in (dict, collections.OrderedDict):
        return list(itertools.islice(reversed(b.items(c)), most, most + number))
    return []


def exchange(c, items, tensor, by):
    """Replaces tensors in items of a container by what by returns. Returns how many items changed."""
    changed = 0
    for key, item in items:
        now = exchanged(item, tensor, by)
        if now is not item:
            base(c).__setitem__(c, key, now)
            changed += 1
    return changed


def exchanged(item, tensor, by, deep=True):
    """An item with its tensors replaced. The item itself if none is, or if they are not in plain tuples, lists and dictionaries."""
    if issubclass(type(item), tensor):
        return by(item)
    if deep and type(item) in (tuple, list):
        now = [exchanged(x, tensor, by, False) for x in item]
        if any(a is not b for a, b in zip(now, item)):
            return type(item)(now)
    elif deep and type(item) is dict:
        now = {k: exchanged(x, tensor, by, False) for k, x in item.items()}
        if any(now[k] is not item[k] for k in now):
            return now
    return item
