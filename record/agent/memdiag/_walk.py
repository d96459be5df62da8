"""A bounded walk from the program's own names down to the objects.

The walk begins at the globals of __main__, the locals of running functions and the globals of other
modules, and follows containers, attributes and closures. It never calls the program's code: it reads
dictionaries and slots only, and asks for types by type(), since isinstance asks the object. Of each
path the container with most items is named, for that is what grows.
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

# Objects of one walk at most.
OBJECTS = 200_000
# The share of a line's objects that a walk must have found for their holder to be told: many are no objects, but tables of
# dictionaries, buffers.
LINES_COVERAGE = 0.1
# What grows: so many times the bytes of the first look, or survivors of BIRTHS different steps; so many sites
# are looked for.
LARGER, SITES = 2, 12
# The site of tensors whose stack was not recorded, and that of the graph's nodes.
UNSEEN, GRAPH = "", "graph"
# What is so many steps from a name at most is looked at before new things that variables have.
NEAR = 3
# Generations of the collector's that have what was made in a window.
YOUNG = 0, 1
# Items of a container that tell whether it is as new as they are. To ask of one that is takes 0.1 ms.
FIRST = 3
# Seconds for which it may be asked who refers to what a window has made.
ASKING = 0.05
# Containers of which a walk takes note at most.
LENGTHS = 10_000

BASES = str, bytes, int, float, complex
# Types are known by their ids: the program's have its metaclasses' own hash and ==.
ATOMS = set(map(id, (*BASES, bool, type(None), types.CodeType, types.BuiltinFunctionType, types.WrapperDescriptorType,
                     types.GetSetDescriptorType, types.MemberDescriptorType, range, slice)))
TRACED_ATOMS = set(map(id, (float, int, str, bytes)))
SEQUENCES = tuple(LISTS)
# Of queues and caches, the field that says how many items one may have; and the fields that those are in.
QUEUES = {"queue.Queue": "maxsize", "asyncio.queues.Queue": "_maxsize", "logging.handlers.BufferingHandler": "capacity", "cachetools.Cache": "_Cache__maxsize"}
QUEUED = {".queue", "._queue", ".buffer", "._Cache__data"}
DICTS = set(map(id, (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)))


class Site(collections.namedtuple("Site", "number")):
    """The site of blocks on a GPU."""


class Walk(Roots, Autograd):
    def __init__(self, torch, wanted, lines, unseen=(), table=(), items=ITEMS, saved="", quiet=True):
        self.torch, self.items, self.prefix = torch, items, saved
        self.quiet = quiet  # autograd is
        self.tensor = torch.Tensor if torch else ()
        self.wanted, self.lines, self.unseen, self.table = wanted, lines, unseen, table
        self.sizes = collections.Counter(wanted.values())
        if unseen:
            self.sizes[UNSEEN] = sum(unseen.values())
        self.hits, self.line_hits, self.array_hits = {}, {}, {}  # by site: Votes
        self.graph_hits, self.in_graph = {}, set()  # by site: the holder; and the sites of which several were found there
        self.blocks, self.placed = None, {}  # on GPUs
        self.kept = None  # what keeps most nodes of the graph, how many were counted, and whether these are all
        self.ends = []  # of the largest graphs: the place of the tensor, its path, its node, and how many were counted
        self.seen, self.queue = set(), collections.deque()
        self.named = {}  # the places of objects that a variable has, or one of its attributes, by id
        self.later = []  # what push takes, of new things in variables
        self.passing = ()  # variables that had something else in each step, as Node.variable tells them
        self.graph_roots = []
        self.handled, self.given = None, set()  # storages that the census found, and those that have a handle since we read them
        self.containers = None  # places of those that were found, if they are asked for
        self.types, self.nodes = {}, {}  # by id of a type: its fields, and of a node of the graph the attributes that hold tensors
        self.ndarray, self.array = (contents(sys.modules[module]).get(name) if module in sys.modules else None
                                    for module, name in (("numpy", "ndarray"), ("jax._src.array", "ArrayImpl")))
        self.cut = self.reached = False  # it was, and all that the program's own names lead to was seen
        self.brief = bool(lines) and items is NEW  # it is one in a window
        self.half = self.until = math.inf  # when half of its time is over, and all
        self.near = True  # whether it goes through the program's own names
        self.early = set()  # sites that are looked for only there
        self.left_out = {"meta"}  # kinds of devices whose memory others record
        self.order = iter
        if lines:
            self.order = reversed  # what was made in a window is at the end, and a walk in one is short
            self.traceback = _tracemalloc._get_object_traceback

    def place(self, blocks, placed):
        """Has it look for these blocks on GPUs as well, {address: number of the site}."""
        self.blocks, self.placed = blocks, {address: Site(n) for address, n in placed.items()}
        self.sizes.update(self.placed.values())

    def run(self, seconds=SECONDS, counting=False):
        """Walks, and may count what keeps autograd's graph. The graphs behind the program's own names are asked before
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
        """Whether enough of its time has gone to where it begins: a program may have hundreds of threads."""
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
                # An object that cannot be looked into hides what it holds.

    def covered(self):
        """The sites of which enough was found. A variable has the last of what a graph holds; and a walk that was cut
        short has seen what the step that runs holds, before what holds the rest."""
        return {stack for stack, votes in self.hits.items() if votes.total >= COVERAGE * self.sizes[stack]}

    def held_lines(self):
        """The lines with enough objects found."""
        return [stack for stack, votes in self.line_hits.items() if votes.total >= LINES_COVERAGE * self.lines[stack]]

    def unreached(self):
        """The lines with a new object to which no reached object refers. A line may make mostly what is no object, such as the
        tables of lists, and the walk may have seen only a part of a large set. gc.get_referrers goes through all objects: it is
        called for the first few of a line, and for ASKING seconds."""
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
        return found | self.arrays(stacks - found, until)  # at last: what it makes is young, too

    def arrays(self, stacks, until):
        """Those of lines that were not reached which make arrays: the collector does not know these, but NumPy tells tracemalloc
        which blocks are an array's. Not where something else was reached that the same line of the program's makes, whose C
        code may have them, nor beside PyTorch, whose tensors may lie in them."""
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
        """Whether an object was made in the window."""
        return self.traceback(obj) is not None

    def came(self, obj):
        """Whether a container came as a whole in the window, so that it did not grow. Of Python's freed lists and the like,
        which are used again, the first items tell."""
        base = self.brief and next((b for b in (*SEQUENCES, dict) if issubclass(type(obj), b)), None)
        if not base:
            return False
        first = list(itertools.islice(dict.values(obj) if base is dict else base.__iter__(obj), FIRST))
        return self.made(obj) or 2 * sum(map(self.made, first)) > len(first)

    def line(self, obj):
        """The stack that allocated an object, if it is of a line that grows."""
        stack = self.traceback(obj)
        stack = stack and shortened(stack)
        return stack if stack in self.lines else None

    def visit(self, obj, node):
        t = type(obj)
        if self.lines:
            stack = self.line(obj)
            if stack is not None:
                vote(self.line_hits, stack, node)  # which is no container yet: it does not hold itself
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
                if type(v) is dict:  # of a cache without a bound; of others keys and results come themselves
                    self.seen.add(id(v))
                    for key, result in some_items(v, most):
                        self.push(key, node, "{…}")
                        self.push(result, node, "[…]")
                elif v is not obj.__wrapped__:
                    self.push(v, node, "[…]")
        elif id(t) in FRAMES:
            frame = getattr(obj, FRAMES[id(t)])
            if frame is not None:  # it has not ended
                self.frame(frame, node)
        elif t is threading_local:
            for threads in gc.get_referents(obj):
                for d in list(threads.values()) if type(threads) is dict else ():
                    if type(d) is dict:  # what one thread has
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
        elif issubclass(t, (types.ModuleType, types.FrameType)):
            return
        else:
            if self.ndarray and issubclass(t, self.ndarray):
                self.push(self.ndarray.base.__get__(obj), node, ".base", "attribute")  # a subclass may have its own
            if not self.attributes(obj, node):
                for v in gc.get_referents(obj):
                    if not issubclass(type(v), (type, types.ModuleType)):
                        self.push(v, node, "")

    def container(self, obj, node, kind, items, bound=None):
        """Has a node be a container of so many items, of so many at most where it has a bound, and returns how many of
        them to look at."""
        most = self.items[0 if next(node.containers(), None) is None else 1]
        node.kind, node.items, node.id, node.each, node.bound = "" if self.came(obj) else kind, items, id(obj), max(1, items / most), bound or 0
        if self.containers is not None and node.kind not in ("", "tuple", "array") and len(self.containers) < LENGTHS:
            self.containers.append((node, self.near))
        return most

    def attributes(self, obj, node):
        """Follows an object's dictionary and slots; False where it has neither."""
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
                pass  # a slot that is not set
        return any_

    def fields(self, t):
        """What reads the dictionary of a type's objects, its slots by their names, and which field is the bound of what
        it queues; None for other types."""
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
                stack = None  # it has no storage: sparse, or of a subclass
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
        """The site of a storage that is looked for; None for others."""
        address = storage._cdata
        if self.unseen and address not in self.table and storage.device.type not in self.left_out and storage.nbytes() in self.unseen:
            return UNSEEN
        site = self.wanted.get(address)
        return self.placed.get(self.blocks.start(storage.data_ptr())) if site is None and self.placed else site


def qualified(t):
    module, name = module_of(t), type.__dict__["__name__"].__get__(t)
    return module + "." + name if type(module) is str else name


def vote(hits, stack, node):
    hits.setdefault(stack, Votes()).add(node)


def key_text(k):
    return repr(k)[:40] if type(k) is str or type(k) is int else "…"
