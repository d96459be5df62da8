"""Walks from the program's own names down to its objects, within a time limit.

The walk begins at the globals of __main__, the locals of running functions and the globals of other modules. It follows containers,
attributes and closures. It never calls the program's code: it reads only dictionaries and slots, and compares types by type(), since
isinstance asks the object. On each path it names the container with most items, since that is what grows.
"""

import _tracemalloc
import collections
import gc
import itertools
import math
import sys
import types
from _thread import _local as threading_local

from ._clock import work
from ._graph_walk import BIRTHS, COVERAGE, OFTEN, SECONDS, Autograd
from ._handlers import raised
from ._items import objects_of
from ._length import BUFFERS, CYCLE, FRAMES, LISTS, OPTIMIZED, contents, defaults, dict_of, lru_cache_wrapper, maxlen, members, module_of, mro, once, own, taken
from ._objects import of_other_types
from ._places import CONTAINERS, ITEMS, NAMED, NEW, PARTS, Node, Votes
from ._roots import Roots, is_programs, named
from ._samples import base_of, some, some_items, spread, spread_items
from ._traces import programs_line, shortened

# Objects that one walk visits at most.
OBJECTS = 200_000
# A line's holder is reported if the walk found this share of the line's objects. Many blocks are no objects, but tables of dictionaries, or
# buffers.
LINES_COVERAGE = 0.1
# A site grows if it has LARGER times the bytes of the first look, or survivors of BIRTHS different steps. SITES: how many are searched for.
LARGER, SITES = 2, 12
# The site of tensors without a recorded stack, and the site of the graph's nodes.
UNSEEN, GRAPH = "", "graph"
# Objects up to so many steps from a name are visited before the new objects that variables have.
NEAR = 3
# Generations of the collector that have what was allocated in a window.
YOUNG = 0, 1
# First items of a container that show whether it is as new as they are. The same number of a line's objects have their referrers searched,
# which takes 0.1 ms each.
FIRST = 3
# Seconds for which the referrers of what a window has allocated may be listed.
ASKING = 0.05
# Containers that a walk notes at most.
LENGTHS = 10_000

BASES = str, bytes, int, float, complex
# Types are compared by id: a metaclass of the program may have its own hash and ==.
ATOMS = set(map(id, (*BASES, bool, type(None), types.CodeType, types.BuiltinFunctionType, types.WrapperDescriptorType,
                     types.GetSetDescriptorType, types.MemberDescriptorType, range, slice)))
TRACED_ATOMS = set(map(id, (float, int, str, bytes)))
SEQUENCES = tuple(LISTS)
# The field of queues and caches that limits their items; and the fields that hold these items.
QUEUES = {"queue.Queue": "maxsize", "asyncio.queues.Queue": "_maxsize", "logging.handlers.BufferingHandler": "capacity", "cachetools.Cache": "_Cache__maxsize"}
QUEUED = {".queue", "._queue", ".buffer", "._Cache__data"}
DICTS = set(map(id, (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)))


class Site(collections.namedtuple("Site", "number")):
    """The site of blocks on a GPU."""


class Walk(Roots, Autograd):
    def __init__(self, torch, wanted, lines, unseen=(), table=(), items=ITEMS, saved="", quiet=True):
        self.torch, self.items, self.prefix = torch, items, saved
        self.quiet = quiet  # whether autograd is at rest
        self.tensor = torch.Tensor if torch else ()
        self.wanted, self.lines, self.unseen, self.table = wanted, lines, unseen, table
        self.sizes = collections.Counter(wanted.values())
        if unseen:
            self.sizes[UNSEEN] = sum(unseen.values())
        self.hits, self.line_hits, self.array_hits = {}, {}, {}  # by site: Votes
        self.graph_hits, self.in_graph = {}, set()  # by site: the holder in a graph; and sites with several storages there
        self.blocks, self.placed = None, {}  # PyTorch's blocks on GPUs; by address of those that are searched for: their Site
        self.kept = None  # what holds most nodes of the graph, how many were counted, and whether these are all
        self.ends = []  # of each of the largest graphs: the place of its tensor, the path, the node at its end, and how many nodes were counted
        self.seen, self.queue = set(), collections.deque()
        self.named = {}  # by id of an object that a variable, or an attribute of one, has: its place
        self.later = []  # arguments of push for new objects in variables
        self.passing = ()  # variables that had another object in each step, as Node.variable returns them
        self.graph_roots = []
        self.handled, self.given = None, set()  # storages that the census found; and those that got a handle because we read them
        self.containers = None  # the places of the containers found, if they are wanted
        self.types, self.nodes = {}, {}  # by id of a type: its fields; and for nodes of the graph the attributes that hold tensors
        self.ndarray, self.array = (contents(sys.modules[module]).get(name) if module in sys.modules else None
                                    for module, name in (("numpy", "ndarray"), ("jax._src.array", "ArrayImpl")))
        self.cut = self.reached = False  # whether the walk was cut short; whether it got through all that the program's own names lead to
        self.brief = bool(lines) and items is NEW  # whether the walk is in a window
        self.half = self.until = math.inf  # when half of its time is over, and when all is
        self.near = True  # whether it is still at the program's own names
        self.early = set()  # sites that are searched for only there
        self.left_out = {"meta"}  # device types whose memory is recorded elsewhere
        self.order = iter
        if lines:
            self.order = reversed  # what was allocated in a window is last, and a walk in a window is short
            self.traceback = _tracemalloc._get_object_traceback

    def place(self, blocks, placed):
        """Searches for these blocks on GPUs as well, {address: number of the site}."""
        self.blocks, self.placed = blocks, {address: Site(n) for address, n in placed.items()}
        self.sizes.update(self.placed.values())

    def run(self, seconds=SECONDS, counting=False):
        """Walks, and with counting counts the nodes of autograd's graph. Graphs at the program's own names are read before the walk goes through
        the many names of libraries."""
        begun = work()
        self.half, self.until = begun + seconds / 2, begun + seconds
        for roots in self.programs, self.registries, self.suspended, self.libraries:
            if self.late():
                return
            self.reached, self.near = roots == self.libraries, roots == self.programs
            roots()
            self.follow()
            left = self.sizes.keys() - self.covered() - self.in_graph
            if self.quiet and self.graph_roots:
                self.graphs(left, counting and roots == self.programs, seconds)
                self.graph_roots.clear()
            if self.cut or left <= self.in_graph | self.early and (self.held_lines() or not self.lines):
                return

    def late(self):
        """Whether the walk's time is over."""
        self.cut = self.cut or work() > self.until
        return self.cut

    def over(self):
        """Whether half of the time is over. A program may have hundreds of threads to begin at."""
        return work() > self.half

    def follow(self):
        n = 0
        while self.queue or self.later:
            if not self.queue or self.later and self.queue[0][1].depth > NEAR:
                for variable in self.later:
                    self.push(*variable)
                self.later.clear()
                continue
            obj, node = self.queue.popleft()
            n += 1
            if n % 32 == 0 and (n > OBJECTS or self.late()):
                self.cut = True
                self.queue.clear()
                self.later.clear()
                return
            try:
                self.visit(obj, node)
            except Exception as e:
                if raised(e):
                    raise
                # An object that cannot be read hides what it holds.

    def covered(self):
        """The sites with enough storages found. A variable may hold the last of what a graph holds. And a walk that was cut short has seen what the
        running step holds, before what holds the rest."""
        return {stack for stack, votes in self.hits.items() if votes.total >= COVERAGE * self.sizes[stack]}

    def held_lines(self):
        """The lines with enough objects found."""
        return [stack for stack, votes in self.line_hits.items() if votes.total >= LINES_COVERAGE * self.lines[stack]]

    def unreached(self):
        """The lines that have a new object to which no reached object refers. A line may allocate mostly blocks that are no objects, such as the
        tables of lists, and the walk may have seen only part of a large set. gc.get_referrers goes through all objects, so it is called for
        the first few objects of a line, and for ASKING seconds."""
        stacks = {s for s, n in self.lines.items() if s not in self.line_hits or self.line_hits[s].total * OFTEN < n}
        found, asked, until = set(), collections.Counter(), work() + ASKING
        for obj in itertools.chain(*(of_other_types(tuple, gc.get_objects, young) for young in YOUNG)) if stacks else ():
            if id(obj) not in self.seen:
                stack = self.line(obj)
                if stack not in stacks or stack in found or asked[stack] >= FIRST:
                    continue
                if work() > until:
                    break
                asked[stack] += 1
                if self.seen.isdisjoint(map(id, of_other_types(tuple, gc.get_referrers, obj))):
                    found.add(stack)
        return found | self.arrays(stacks - found, until)  # last, since it makes young objects itself

    def arrays(self, stacks, until):
        """Those lines of stacks that allocate arrays. The collector does not know arrays, but NumPy marks their blocks in tracemalloc. A line is left
        out if something else of the same line of the program was reached, whose C code may hold the arrays. All are left out beside PyTorch, whose
        tensors may be in arrays."""
        reached = {programs_line(s) for s in self.lines.keys() - stacks}
        stacks = {s for s in stacks if programs_line(s) not in reached} if not self.torch and work() < until else ()
        made, short = collections.Counter(), {}
        for domain, _, stack, _ in _tracemalloc._get_traces() if stacks else ():
            if domain:
                made[id(stack)] += 1
                short[id(stack)] = stack
        found = {shortened(short[n]) for n, blocks in made.items() if blocks >= BIRTHS}
        return found.intersection(stacks)

    def push(self, obj, parent, label, kind="", place=None):
        t = type(obj)
        if id(t) in ATOMS or issubclass(t, BASES):
            if self.lines and (id(t) in TRACED_ATOMS or id(t) not in ATOMS):
                stack = self.line(obj)
                if stack is not None:
                    vote(self.line_hits, stack, Node(parent, label, kind))
            return
        if id(obj) in self.seen:
            if id(obj) in self.named and parent.kind in CONTAINERS:
                self.named[id(obj)].other = parent
            return
        self.seen.add(id(obj))
        node = Node(parent, label, kind, place)
        if node.depth <= NAMED:
            self.named[id(obj)] = node
        self.queue.append((obj, node))

    def made(self, obj):
        """Whether an object was allocated in the window."""
        return self.traceback(obj) is not None

    def came(self, obj):
        """Whether a container was made as a whole in the window, so that it did not grow. Python reuses freed lists and the like without an
        allocation: there the first items show it."""
        base = self.brief and next((b for b in (*SEQUENCES, dict) if issubclass(type(obj), b)), None)
        if not base:
            return False
        first = list(itertools.islice(dict.values(obj) if base is dict else base.__iter__(obj), FIRST))
        return self.made(obj) or 2 * sum(map(self.made, first)) > len(first)

    def line(self, obj):
        """The stack that allocated an object, if it is of a growing line."""
        stack = self.traceback(obj)
        stack = stack and shortened(stack)
        return stack if stack in self.lines else None

    def visit(self, obj, node):
        t = type(obj)
        if self.lines:
            stack = self.line(obj)
            if stack is not None:
                vote(self.line_hits, stack, node)  # before its node becomes a container's: an object does not hold itself
        if self.tensor and issubclass(t, self.tensor):
            self.tensor_(obj, node)
        elif issubclass(t, SEQUENCES):
            base, items = base_of(t), obj
            n, bound = base.__len__(obj), maxlen(obj) if base is collections.deque else 0
            if node.label in QUEUED and node.parent.bound:
                bound = node.parent.bound
            elif base is list and taken(obj):
                n, bound, node.ring = taken(obj), n, True
                items = list.__getitem__(obj, slice(n))
            most = self.container(obj, node, LISTS[base], n, bound)
            for place, v in self.order(list(enumerate((some if self.brief else spread)(items, most)))):
                self.push(v, node, "{…}" if LISTS[base] == "set" else "[…]", place=place if n <= most else None)
        elif issubclass(t, dict):
            bound = node.parent.bound if node.label in QUEUED else 0
            for k, v in self.order((some_items if self.brief else spread_items)(obj, self.container(obj, node, "dict", dict.__len__(obj), bound))):
                self.push(k, node, "{…}")
                self.push(v, node, "[%s]" % key_text(k))
            if id(t) not in DICTS:
                self.attributes(obj, node)
        elif t is types.FunctionType:
            for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or ()):
                try:
                    self.push(cell.cell_contents, node, " closure " + name, "closure")
                except ValueError:
                    pass  # an empty cell
            for name, v in defaults(obj).items():
                self.push(v, node, " default " + name, "variable")
            if obj.__dict__:
                self.push_all(obj.__dict__, node)
        elif t is types.MethodType:
            self.push(obj.__self__, node, ".__self__", "attribute")
            self.push(obj.__func__, node, "")
        elif t is lru_cache_wrapper:
            about = obj.cache_info()
            most = self.container(obj, node, "cache", about.currsize, about.maxsize)
            for v in some(gc.get_referents(obj), 2 * most):
                if type(v) is dict:  # a cache without a limit refers to a dict; others refer to keys and results themselves
                    self.seen.add(id(v))
                    for key, result in some_items(v, most):
                        self.push(key, node, "{…}")
                        self.push(result, node, "[…]")
                elif v is not obj.__wrapped__:
                    self.push(v, node, "[…]")
        elif id(t) in FRAMES:
            frame = getattr(obj, FRAMES[id(t)])
            if frame is not None:  # the function has not ended
                self.frame(frame, node)
        elif t is threading_local:
            for threads in gc.get_referents(obj):
                for d in list(threads.values()) if type(threads) is dict else ():
                    if type(d) is dict:  # the attributes of one thread
                        self.push_all(d, node)
        elif id(t) in BUFFERS:
            kind, room = BUFFERS[id(t)]
            self.container(obj, node, kind, room(obj))
        elif t is self.array:
            vote(self.array_hits, obj.nbytes, node)
        elif t is self.ndarray:
            self.push(obj.base, node, ".base", "attribute")
            if obj.dtype.char == "O":
                found, n = objects_of(obj)
                for v in some(found, self.container(obj, node, "array", n)):
                    self.push(v, node, "[…]")
        elif issubclass(t, type):
            module = module_of(obj)
            if "." not in module or is_programs(sys.modules.get(module)):
                self.push_all(dict(members(obj)), node)
        elif t is itertools.cycle:
            for v in gc.get_referents(obj):
                self.push(v, node, CYCLE if type(v) is list else "")
        elif t is types.TracebackType:
            if obj.tb_frame.f_code.co_flags & OPTIMIZED:
                self.frame(obj.tb_frame, node)
            self.push(obj.tb_next, node, "")
        elif issubclass(t, (types.ModuleType, types.FrameType)) or ours(t):
            return
        else:
            if self.ndarray and issubclass(t, self.ndarray):
                self.push(self.ndarray.base.__get__(obj), node, ".base", "attribute")  # a subclass may have its own
            if not self.attributes(obj, node):
                for v in gc.get_referents(obj):
                    if not issubclass(type(v), (type, types.ModuleType)):
                        self.push(v, node, "")

    def container(self, obj, node, kind, items, bound=None):
        """Makes a node that of a container with so many items, and with a limit if bound is given. Returns how many of the items to visit."""
        most = self.items[0 if next(node.containers(), None) is None else 1]
        node.kind, node.items, node.id, node.each, node.bound = "" if self.came(obj) else kind, items, id(obj), max(1, items / most), bound or 0
        if self.containers is not None and node.kind not in ("", "tuple", "array") and len(self.containers) < LENGTHS:
            self.containers.append((node, self.near))
        return most

    def attributes(self, obj, node):
        """Follows an object's dictionary and slots; False if it has neither."""
        d, slots, room = self.fields(type(obj))
        if issubclass(type(obj), BaseException):
            for name in "__traceback__", "__cause__", "__context__":
                self.push(getattr(BaseException, name).__get__(obj), node, "." + name, "attribute")
        if room and type(own(obj, d).get(room)) is int:
            node.bound = max(0, own(obj, d)[room])
        self.push_all(own(obj, d), node)
        any_ = bool(own(obj, d))
        for name, member in slots:
            try:
                self.push(member.__get__(obj), node, "." + name, "attribute")
                any_ = True
            except AttributeError:
                pass  # the slot is not set
        return any_

    def fields(self, t):
        """For a type: what reads the dictionary of its objects, its slots with their names, and for a queue the field that limits its items, or
        None."""
        return once(self.types, t, lambda: (dict_of(t), [(name, member) for c in mro(t) for name, member in members(c).items()
                                                  if type(member) is types.MemberDescriptorType and name != "__dict__"],
                                            next((QUEUES[q] for q in map(qualified, mro(t)) if q in QUEUES), None)))

    def push_all(self, d, node):
        self.seen.add(id(d))
        for k, v in list(d.items()):
            label = named(k)
            if label in PARTS and type(v) is dict:
                self.seen.add(id(v))
                parts = Node(node, label)
                for name, part in some_items(v, self.container(v, parts, "dict", len(v))):
                    self.push(part, parts, named(name), "attribute")
            else:
                self.push(v, node, label, "attribute")

    def tensor_(self, t, node):
        if self.sizes:
            try:
                stack = self.site(self.tensor.untyped_storage(t))
            except Exception:
                stack = None  # it has no storage: a sparse tensor, or one of a subclass
            if stack is not None:
                vote(self.hits, stack, node)
        if self.quiet and self.tensor.grad_fn.__get__(t) is not None:
            self.graph_roots.append((t, node))
        elif self.quiet and self.tensor.is_leaf.__get__(t):
            self.push(self.tensor.grad.__get__(t), node, ".grad", "attribute")
        self.push_all(own(t, self.fields(type(t))[0]), node)
        hooks = self.tensor._backward_hooks.__get__(t)
        if hooks:
            self.push(hooks, node, "._backward_hooks", "attribute")

    def site(self, storage):
        """The site of a storage that is searched for; None for other storages."""
        address = storage._cdata
        if self.unseen and address not in self.table and storage.device.type not in self.left_out and storage.nbytes() in self.unseen:
            return UNSEEN
        site = self.wanted.get(address)
        return self.placed.get(self.blocks.start(storage.data_ptr())) if site is None and self.placed else site


def ours(t):
    """Whether a type is the agent's. What it has put in the program's place leads there, such as os.memfd_create."""
    module = module_of(t)
    return type(module) is str and module.startswith(__name__.rpartition(".")[0] + ".")


def qualified(t):
    module, name = module_of(t), type.__dict__["__name__"].__get__(t)
    return module + "." + name if type(module) is str else name


def vote(hits, stack, node):
    hits.setdefault(stack, Votes()).add(node)


def key_text(k):
    return repr(k)[:40] if type(k) is str or type(k) is int else "…"
