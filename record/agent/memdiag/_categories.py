"""What live tensors are for: parameters and buffers of models, gradients, states of optimizers, and results in autograd's graph.

Optimizers are known once they step. Models are searched under the names of the main module and of functions that run. Nothing of the
program is called: dictionaries are read directly, and tensors of subclasses are left out, except PyTorch's own distributed tensors.
"""

import collections
import sys
import types
from weakref import ref

from . import _census
from ._clock import work
from ._handlers import raised
from ._length import dict_of, once, own
from ._roots import Roots
from ._samples import some, some_items
from ._walk import ATOMS, BASES

# Numbers of the categories, as the reader knows them.
PARAMETER, BUFFER, GRADIENT, STATE, RESULT, WORKSPACE = 1, 2, 3, 4, 5, 7
# Tensors that are looked at, at most; and how deep inside an optimizer's state.
MOST, NESTED = 50_000, 2
# Limits of one search for models: objects, seconds, steps from a name, and items of a container.
OBJECTS, SECONDS, DEPTH, ITEMS = 5000, 0.01, 3, 40
# The next search comes when the number of steps is so many times as large.
AGAIN = 2


class Models(Roots):
    """A search for models."""

    near = False

    def __init__(self, torch, types_):
        self.kind, self.left_out = torch.nn.Module, (*BASES, torch.Tensor, type, types.ModuleType, types.FunctionType, types.MethodType, types.FrameType)
        self.types, self.seen, self.queue, self.found = types_, set(), collections.deque(), []
        self.until = work() + SECONDS

    def over(self):
        return work() > self.until

    def push(self, obj, node, label, kind="", place=None):
        self.add(obj, 1)

    def add(self, obj, depth):
        t = type(obj)
        if id(t) in ATOMS or issubclass(t, self.left_out) or id(obj) in self.seen:
            return
        self.seen.add(id(obj))
        if issubclass(t, self.kind):
            self.found.append(obj)
        if depth <= DEPTH:
            self.queue.append((obj, depth))

    def search(self):
        self.running()
        n = 0
        while self.queue and n < OBJECTS and (n % 32 or not self.over()):
            n += 1
            obj, depth = self.queue.popleft()
            t = type(obj)
            if issubclass(t, dict):
                held = [v for _, v in some_items(obj, ITEMS)]
            elif issubclass(t, (list, tuple)):
                held = some(obj, ITEMS)
            elif issubclass(t, self.kind):
                continue  # its parts are found through it
            else:
                held = list(own(obj, once(self.types, t, lambda: dict_of(t))).values())
            for v in held:
                self.add(v, depth + 1)
        return self.found


class Categories:
    def __init__(self, agent, source):
        self.agent, self.source = agent, source
        self.optimizers = {}  # by id: weak references
        self.modules, self.next = [], 0  # weak references to modules, and the step of the next search
        self.types = {}

    def stepped(self, optimizer):
        known = self.optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            self.optimizers[id(optimizer)] = ref(optimizer)

    def find(self, found, quiet):
        """Finds what tensors are for. Finds gradients only while autograd is quiet."""
        optimizers = [(i, r()) for i, r in list(self.optimizers.items())]
        self.optimizers = {i: self.optimizers[i] for i, o in optimizers if o is not None}
        fields = [self.fields(o) for _, o in optimizers if o is not None]
        trained = [t for f in fields for group in items(f.get("param_groups")) if issubclass(type(group), dict) for t in items(dict.get(group, "params"))]
        self.of_models(found)
        found.add(trained, PARAMETER)
        found.also(found.told.parameters, PARAMETER)
        for f in fields:
            found.nested(f.get("state"), STATE, NESTED)
        if quiet:
            found.add(found.gradients(trained), GRADIENT)
        found.also(found.told.results, RESULT)
        found.on_gpus(found.told.pointers, RESULT)
        found.on_gpus(found.blocks.workspaces if found.blocks is not None else (), WORKSPACE)

    def of_models(self, found):
        moment = self.agent.step or self.agent.ticks
        if moment >= self.next:
            self.modules = [ref(m) for m in self.parts(Models(self.source.module, self.types).search())]
            self.next = int(moment * AGAIN) + 1
        for m in self.modules:
            fields = self.fields(m())  # empty if the module is gone
            found.add(items(fields.get("_parameters")), PARAMETER)
            found.add(items(fields.get("_buffers")), BUFFER)

    def parts(self, waiting):
        """Modules and their submodules that have tensors themselves."""
        parts = {}
        while waiting and len(parts) < MOST:
            m = waiting.pop()
            if id(m) not in parts:
                parts[id(m)] = m
                waiting.extend(c for c in items(self.fields(m).get("_modules")) if issubclass(type(c), self.source.module.nn.Module))
        return [m for m in parts.values() if items(self.fields(m).get("_parameters")) or items(self.fields(m).get("_buffers"))]

    def fields(self, obj):
        return own(obj, once(self.types, type(obj), lambda: dict_of(type(obj))))


class Told:
    """What a census finds about storages on the CPU, if it looked at all tensors."""

    def __init__(self):
        self.parameters, self.results = set(), set()  # addresses; results are in autograd's graph
        self.pointers = set()  # pointers of such results on GPUs
        self.unrecorded = collections.defaultdict(list)  # by size: storages that nobody watched

    def add(self, storages, table):
        for address, (size, part) in storages.items():
            if part & _census.RESULT:
                self.results.add(address)
            if address not in table:
                self.unrecorded[size].append(address)


class Found:
    """Categories of storages on the CPU and of blocks on GPUs, by address. The first one found counts."""

    def __init__(self, torch, blocks, told, elsewhere):
        self.elsewhere = elsewhere  # whether a tensor that is not on the CPU is recorded storage by storage
        self.tensor, self.parameter, self.blocks = torch.Tensor, torch.nn.Parameter, blocks
        self.cpu, self.gpu, self.told, self.left = {}, {}, told, MOST
        self.sizes = {}  # by size: how many unwatched storages each category has
        # The part of a distributed tensor on this rank is in a slot, which can be read without calling Python code.
        self.distributed = vars(sys.modules.get("torch.distributed.tensor", types)).get("DTensor")
        part = vars(self.distributed).get("_local_tensor") if isinstance(self.distributed, type) else None
        self.part = part.__get__ if type(part) is types.MemberDescriptorType else None

    def local(self, t):
        """The tensor; of a distributed tensor, the part on this rank."""
        return self.part(t) if self.part is not None and type(t) is self.distributed else t

    def also(self, addresses, category):
        for address in addresses:
            self.cpu.setdefault(address, category)

    def on_gpus(self, pointers, category):
        for p in pointers if self.blocks is not None else ():
            block = self.blocks.start(p)
            if block is not None:
                self.gpu.setdefault(block, category)

    def of(self, address, size, weight):
        """The category of a storage that stands for so many of its size."""
        category = self.cpu.get(address, 0)
        return category if weight == 1 or self.alike(size).keys() == {category} else 0

    def shares(self, size, count):
        """The categories of unwatched storages of a size, with the number of each."""
        known = self.alike(size)
        if len(known) == 1:
            return [(*known, count)]
        return known.items() if sum(known.values()) == count else [(0, count)]  # else some of them were assigned to stacks

    def alike(self, size):
        if size not in self.sizes:
            self.sizes[size] = collections.Counter(self.cpu.get(a, 0) for a in self.told.unrecorded.get(size, ()))
        return self.sizes[size]

    def add(self, objects, category):
        """Records the category of those objects that are tensors."""
        self.left -= len(objects)
        tensor, parameter, cpu = self.tensor, self.parameter, self.cpu
        for t in map(self.local, objects) if self.left >= 0 else ():
            if type(t) is not tensor and type(t) is not parameter:
                continue
            try:
                if not t.is_cuda and (t.is_cpu or self.elsewhere(t)):
                    cpu.setdefault(t.untyped_storage()._cdata, category)
                elif self.blocks is not None:
                    self.on_gpus((t.untyped_storage().data_ptr(),), category)
            except Exception as e:
                if raised(e):
                    raise
                # It has no storage: sparse, or of a transformation.

    def gradients(self, parameters):
        """The gradients of parameters."""
        # For a tensor that is not a leaf, autograd has no Python object of its gradient; asking for it would create one.
        def trained(kind):
            return kind is self.tensor or kind is self.parameter or kind is self.distributed
        return [self.tensor.grad.__get__(t) for t in parameters if trained(type(t)) and t.is_leaf]

    def nested(self, state, category, depth):
        inside = items(state)
        self.add(inside, category)
        for v in inside if depth else ():
            if issubclass(type(v), (dict, list, tuple)):
                self.nested(v, category, depth - 1)


def items(c):
    """The values of a dictionary, or the items of a list or tuple; none for anything else."""
    if issubclass(type(c), dict):
        return list(dict.values(c))
    return list(c) if type(c) in (list, tuple) else ()
