"""Runs a program as if its tensors lay on a GPU: standin.py PROGRAM [ARGUMENT …]

PyTorch is the real one. What it asks of CUDA's allocator, below its own Python code, is answered by a stand-in that keeps the
allocator's rules: storages lie in blocks of segments, by PyTorch's rules for sizes, in pools by stream, size and use_mem_pool; what is
freed is pending up to the next sweep. Pinned and other CPU memory is the program's by pin_memory, cpu and from_numpy.

PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True has segments grow. STANDIN_LIMIT is a GPU's memory in bytes, of which there are
STANDIN_DEVICES. STANDIN_KIND=mps has tensors lie on an accelerator without such an allocator. With STANDIN_PINNED=counts pinned memory
has no record, as before PyTorch 2.14. If memdiag does what would wait for the GPU, or asks for it before the program has used it or in a
forked child, the program ends with 97. In such a child all that is made is the CPU's.
"""

import bisect
import collections
import contextlib
import importlib.machinery
import os
import runpy
import struct
import sys
import threading
import time

SMALL, LARGE, ROUND = 2 << 20, 20 << 20, 512
OFTEN = 200  # storages between two sweeps
SIDE = 16  # one storage in so many is made on another stream
EXPANDS = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get("PYTORCH_ALLOC_CONF", "")
LIMIT = int(os.environ.get("STANDIN_LIMIT") or 1 << 50)
DEVICES = int(os.environ.get("STANDIN_DEVICES") or 1)
KIND = os.environ.get("STANDIN_KIND") or "cuda"
COUNTS = os.environ.get("STANDIN_PINNED") == "counts"
# An event of the record, which is a ring: action, address, size, time, stack, stream, metadata. It is as large as PyTorch's.
EVENT = struct.Struct("<BQQQIII99x")
# Bytes that PyTorch has for a stack, for each of its frames, and for what is stamped on an event.
STACK, FRAME, STAMP = 200, 16, 33
ACTIONS = "alloc", "free_requested", "free_completed", "segment_alloc", "segment_map", "segment_free", "oom", "snapshot"
WAITED = 97
# memdiag doctor has the losses read in its runs.
LOSSES = '"experiment":true' in os.environ.get("MEMDIAG_AGENT", "")
FACTORIES = ("empty zeros ones full rand randn randint randperm arange linspace eye tensor as_tensor empty_strided empty_like zeros_like ones_like "
             "full_like rand_like randn_like").split()


def find_spec(name, path=None, target=None, find=importlib.machinery.PathFinder.find_spec):
    """Has torch.version say that PyTorch was built for CUDA, or not, and PyTorch be ready when its import ends."""
    spec = find(name, path, target)
    if spec is None or name not in ("torch.version", "torch"):
        return spec
    load = spec.loader.exec_module

    def exec_module(module):
        load(module)
        if name == "torch":
            install(module)
        else:
            module.cuda = "13.0" if KIND == "cuda" else None

    spec.loader.exec_module = exec_module
    return spec


class Block:
    def __init__(self, address, size, segment):
        self.address, self.size, self.segment, self.state = address, size, segment, "inactive"
        self.asked, self.stack = 0, 0

    def dictionary(self, stacks):
        used = self.state != "inactive"
        return {"address": self.address, "size": self.size, "requested_size": self.asked if used else 0, "state": self.state,
                "frames": list(stacks[self.stack]) if used else []}


class Segment:
    def __init__(self, address, size, pool):
        self.address, self.size, self.pool, self.device, self.blocks = address, size, pool, pool[-1], []


class Ring:
    """The record of one allocator; as in PyTorch no object of Python's. Its room doubles until there is enough for the most."""

    def __init__(self, most):
        self.most, self.bytes, self.happened, self.stacks = most, bytearray(EVENT.size), 0, bytearray()

    def add(self, depth, *event):
        if self.happened < self.most:
            if EVENT.size * self.happened == len(self.bytes):
                self.bytes.extend(bytes(len(self.bytes)))
            self.stacks.extend(bytes((event[0] == 0) * (STACK + FRAME * depth) + (event[-1] > 0) * STAMP))
        EVENT.pack_into(self.bytes, EVENT.size * (self.happened % self.most), *event)
        self.happened += 1

    def __iter__(self):
        for i in range(max(0, self.happened - self.most), self.happened):
            yield EVENT.unpack_from(self.bytes, EVENT.size * (i % self.most))


class Allocator:
    def __init__(self, torch):
        self.torch, self.segments = torch, []
        self.rings = self.host_ring = self.context = None  # the first by device
        self.pid = None  # of the process that uses the GPU, once it does
        self.lock = threading.RLock()
        self.stacks, self.numbers, self.frames = [()], {(): 0}, {}
        self.texts, self.metadata = [""], threading.local()
        self.live, self.pending = {}, []  # by StorageImpl
        self.pinned = 0  # bytes, of what is free again, too
        self.cpu = {}  # likewise of the CPU's memory; of what is pinned, its block
        self.idle = collections.defaultdict(list)  # by pool, of each free block its size, address, and itself
        self.next, self.made, self.skipped, self.observers = 0x7F0000000000, 0, (), []
        self.private = threading.local()
        self.backward = False  # the last stack was within one
        self.counts = collections.Counter()  # by device and name

    # The record.

    def event(self, action, device, address, size, stack=0, stream=0):
        if self.rings is not None and action not in self.skipped:
            stamp = 0 if self.backward else getattr(self.metadata, "number", 0)
            self.rings[device].add(len(self.stacks[stack]), ACTIONS.index(action), address, size, int(time.time() * 1e6), stack, stream, stamp)

    def trace(self, ring):
        for action, address, size, when, stack, stream, text in ring or ():
            yield {"action": ACTIONS[action], "device_free" if ACTIONS[action] == "oom" else "addr": address, "size": size, "stream": stream, "time_us": when, "frames": list(self.stacks[stack]) if self.context != "state" else [],
                   "compile_context": "N/A", "user_metadata": self.texts[text], "pool_id": (0, 0)}

    def stack(self):
        """What Python runs; of a backward, which on a GPU is a thread's of C++, no more than what that has called."""
        frame, out, self.backward = sys._getframe(), [], False
        while frame is not None:
            f = frame.f_code.co_filename
            if frame.f_code.co_name == "_engine_run_backward":
                self.backward = True
                break
            if f != __file__ and not f.startswith("<frozen") and (out or "/torch/_compile.py" not in f and "/torch/_dynamo/" not in f and "/torch/overrides.py" not in f):
                key = f, frame.f_lineno, frame.f_code.co_name
                out.append(self.frames.setdefault(key, {"name": key[2], "filename": key[0], "line": key[1]}))
            frame = frame.f_back
        number = self.numbers.setdefault(tuple(map(id, out)), len(self.stacks))
        if number == len(self.stacks):
            self.stacks.append(out)
        return number

    def record(self, enabled, context="all", stacks="all", max_entries=sys.maxsize, clear=False, compiled=False, annotations=False, skip=(), pinned=False, cuda=True):
        self.skipped, self.context = tuple(skip), context
        self.touched()
        self.rings = [Ring(min(max_entries, 1 << 20)) for _ in range(DEVICES)] if enabled and cuda else None
        self.host_ring = Ring(min(max_entries, 1 << 20)) if enabled and pinned else None

    def legacy(self, enabled, context, entries, listed, *_):
        """The same, with the arguments of before PyTorch 2.1."""
        self.record(enabled, ("all" if listed else "state") if context else None, max_entries=entries)

    def stamp(self, text):
        if self.texts[getattr(self.metadata, "number", 0)] != text:
            self.metadata.number = len(self.texts)
            self.texts.append(text)

    def used(self):
        return self.pid == os.getpid()

    def touched(self):
        """What may be asked of the GPU by a process that uses it, and by no other."""
        caller = sys._getframe(1)
        while caller is not None and caller.f_globals.get("__name__", "").split(".")[0] != "memdiag":
            caller = caller.f_back
        if caller is not None and not self.used():
            os.write(2, b"the stand-in: %s:%d asks for a GPU that this process does not use\n" % (caller.f_globals["__name__"].encode(), caller.f_lineno))
            os._exit(WAITED)

    # Storages come and go.

    def expired(self, table):
        for address in [a for a in table if self.torch.UntypedStorage._expired(a)]:
            self.torch.UntypedStorage._free_weak_ref(address)
            yield table.pop(address)

    def sweep(self):
        """Frees what nobody has any more; what was freed at the sweep before can be used again."""
        for block in self.pending:
            self.release(block)
            self.event("free_completed", block.segment.device, block.address, block.asked, stream=block.segment.pool[0])
        self.pending = []
        for block in self.expired(self.live):
            self.event("free_requested", block.segment.device, block.address, block.asked, stream=block.segment.pool[0])
            block.state = "active_pending_free"
            self.pending.append(block)
        for block in self.expired(self.cpu):
            if block is not None:
                block.state = "inactive"
                if self.host_ring is not None:
                    self.host_ring.add(0, ACTIONS.index("free_completed"), block.address, block.asked, int(time.time() * 1e6), 0, 0, 0)

    def known(self, table, address):
        return address in table and not self.torch.UntypedStorage._expired(address)

    def add(self, storage, device):
        with self.lock:
            self.added(storage, device)

    def added(self, storage, device):
        address, size = storage._cdata, storage.nbytes()
        if not size or self.known(self.live, address) or self.known(self.cpu, address):
            return
        self.pid = self.pid or os.getpid()
        if getattr(self.private, "cpu", False) or not self.used():
            self.cpu[storage._weak_ref()] = None
            return
        self.made += 1
        if self.made % OFTEN == 0:
            self.sweep()
        block = self.take(size, device)
        block.state, block.asked = "active_allocated", size
        block.stack = self.stack() if self.rings is not None and self.context else 0
        self.live[storage._weak_ref()] = block
        self.event("alloc", device, block.address, size, block.stack, block.segment.pool[0])
        counts = self.counts
        counts[device, "made"] += 1
        counts[device, "now"] = self.now(device) if self.made % 64 == 0 else counts[device, "now"] + block.size
        counts[device, "peak"] = max(counts[device, "peak"], counts[device, "now"])

    def now(self, device):
        return sum(b.size for b in self.live.values() if b.segment.device == device)

    def take(self, size, device):
        rounded = -(-size // ROUND) * ROUND
        pool = 7 * (self.made % SIDE == 0), rounded <= 1 << 20, getattr(self.private, "id", (0, 0)), device
        idle = self.idle[pool]
        i = bisect.bisect_left(idle, (rounded,))
        if i == len(idle):
            self.segment(rounded, pool)
            i = bisect.bisect_left(idle, (rounded,))
        _, _, block = idle.pop(i)
        if block.size > rounded:
            rest = Block(block.address + rounded, block.size - rounded, block.segment)
            block.segment.blocks.insert(block.segment.blocks.index(block) + 1, rest)
            block.size = rounded
            self.release(rest)
        return block

    def release(self, block):
        block.state = "inactive"
        bisect.insort(self.idle[block.segment.pool], (block.size, block.address, block))

    def reserved(self, device):
        return sum(s.size for s in self.segments if s.device == device)

    def empty(self):
        """Gives back segments without a block in use."""
        self.sweep()
        for s in [s for s in self.segments if all(b.state == "inactive" for b in s.blocks)]:
            self.segments.remove(s)
            self.idle[s.pool] = [i for i in self.idle[s.pool] if i[2].segment is not s]
            self.event("segment_free", s.device, s.address, s.size, stream=s.pool[0])

    def segment(self, size, pool):
        whole = SMALL if pool[1] else LARGE if size < 10 << 20 else -(-size // SMALL) * SMALL
        device = pool[-1]
        if self.reserved(device) + whole > LIMIT:
            self.counts[device, "retries"] += 1
            self.sweep()
            self.sweep()
            if not any(n >= size for n, _, _ in self.idle[pool]):
                self.counts[device, "ooms"] += 1
                self.event("oom", device, LIMIT - self.reserved(device), size, self.stack())
                for observer in self.observers:
                    observer(device, size, LIMIT, LIMIT - self.reserved(device))
                raise self.torch.OutOfMemoryError("CUDA out of memory. Tried to allocate %d bytes (the stand-in's)" % size)
            return
        last = next((s for s in self.segments if EXPANDS and s.pool == pool), None)
        if last is None:
            last = Segment(self.next, 0, pool)
            self.segments.append(last)
            self.next += 1 << 36 if EXPANDS else whole + SMALL
        block = Block(last.address + last.size, whole, last)
        self.event("segment_map" if EXPANDS else "segment_alloc", device, block.address, whole, stream=pool[0])
        last.size += whole
        last.blocks.append(block)
        self.release(block)

    def on_cpu(self, tensor, pinned):
        """Has a tensor's storage lie in the CPU's memory."""
        with self.lock:
            return self.moved(tensor, pinned)

    def moved(self, tensor, pinned):
        storage = self.torch.Tensor.untyped_storage(tensor)
        block = None
        if pinned:
            size = 1 << max(storage.nbytes() - 1, 511).bit_length()
            block = Block(self.next, size, None)
            block.state, block.asked, block.stack = "active_allocated", size, self.stack()
            self.next += size
            if self.host_ring is not None:
                self.host_ring.add(0, ACTIONS.index("alloc"), block.address, size, int(time.time() * 1e6), block.stack, 0, 0)
        live = self.live.pop(storage._cdata, None)
        if live is not None:
            self.torch.UntypedStorage._free_weak_ref(storage._cdata)
            self.event("free_requested", live.segment.device, live.address, live.asked)
            live.state = "active_pending_free"
            self.pending.append(live)
        self.cpu[storage._weak_ref()] = block
        self.pinned = max(self.pinned, self.pinned_now())
        return tensor

    def pinned_now(self):
        return sum(b.size for address, b in list(self.cpu.items()) if b is not None and not self.torch.UntypedStorage._expired(address))

    def copied(self, tensor):
        """A copy in the CPU's memory."""
        self.private.cpu = True
        try:
            return tensor.clone()
        finally:
            self.private.cpu = False

    # What PyTorch asks.

    def snapshot(self, pool=None):
        self.touched()
        with self.lock:
            return self.taken(pool)

    def taken(self, pool):
        self.sweep()
        whole = pool is None or len(pool) < 3 or pool[2]
        out = []
        for s in self.segments:
            blocks = [b.dictionary(self.stacks) for b in s.blocks]
            live = [b for b in s.blocks if b.state == "active_allocated"]
            active = [b for b in s.blocks if b.state != "inactive"]
            out.append({"device": s.device, "address": s.address, "total_size": s.size, "allocated_size": sum(b.size for b in live),
                        "active_size": sum(b.size for b in active), "requested_size": sum(b.asked for b in active), "stream": s.pool[0],
                        "segment_type": "small" if s.pool[1] else "large", "segment_pool_id": s.pool[2],
                        "is_expandable": EXPANDS, "frames": [], "blocks": blocks})
        host = [{"address": b.address, "total_size": b.size, "allocated_size": b.size, "active_size": b.size, "requested_size": b.size, "stream": 0,
                 "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": list(self.stacks[b.stack]),
                 "blocks": [b.dictionary(self.stacks)]} for b in self.cpu.values() if b is not None]
        if COUNTS:
            host = []
        for device in range(DEVICES):
            self.event("snapshot", device, 0, 0)
        return {"segments": out, "device_traces": [list(self.trace(r)) if whole else [] for r in self.rings or [None] * DEVICES], "allocator_settings": {"expandable_segments": EXPANDS},
                "external_annotations": [], "host_segments": host, "host_traces": list(self.trace(self.host_ring)) if whole else []}

    def stats(self, device):
        self.touched()
        with self.lock:
            self.sweep()
            live, pending = [[b for b in blocks if b.segment.device == device] for blocks in (self.live.values(), self.pending)]
        now = {"requested": sum(b.asked for b in live), "allocated": sum(b.size for b in live), "active": sum(b.size for b in [*live, *pending]),
               "reserved": self.reserved(device)}
        out = {name + "_bytes": {"all": {"current": n, "peak": n}} for name, n in now.items()}
        counts = self.counts
        out["allocated_bytes"]["all"]["peak"] = max(counts[device, "peak"], now["allocated"])
        out["allocation"] = {"all": {"current": len(live), "allocated": counts[device, "made"], "freed": counts[device, "made"] - len(live)}}
        return {**out, "num_alloc_retries": counts[device, "retries"], "num_ooms": counts[device, "ooms"]}

    def reset_peak(self, device):
        self.counts[device, "peak"] = self.counts[device, "now"] = self.now(device)


def install(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    allocator = Allocator(torch)
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    cdata = lambda t: base.untyped_storage(t)._cdata

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for t in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(t, torch.Tensor) and t.layout == torch.strided:
                    allocator.add(torch.Tensor.untyped_storage(t), device(args))
            return result

    def device(args):
        """The one that is asked for, that of the first tensor, or else the one that is set."""
        asked = getattr(allocator.private, "asked", -1)
        if asked >= 0:
            return asked
        first = next((t for t in (*args, *(args[0] if args and isinstance(args[0], (tuple, list)) else ())) if isinstance(t, torch.Tensor)), None)
        block = None if first is None or first.layout != torch.strided else allocator.live.get(cdata(first))
        return current() if block is None else block.segment.device

    def current():
        return getattr(allocator.private, "device", 0)

    def exchange(index):
        """Sets the device, unless it is less than 0, and returns the one before."""
        before = current()
        if index >= 0:
            allocator.private.device = index
        return before

    def here(value):
        """Where a device is meant, the one that tensors have in truth."""
        if isinstance(value, str) and value.split(":")[0] == "cuda" or isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        return value

    def index(values):
        """That of the GPU among what a function was given, or -1."""
        return next((torch.device(v).index or 0 for v in values if here(v) is not v), -1)

    def anywhere(function):
        def f(*args, pin_memory=False, **kwargs):
            with asking(index((*args, *kwargs.values()))):
                result = function(*map(here, args), **{k: here(v) for k, v in kwargs.items()})
            return allocator.on_cpu(result, True) if pin_memory else result

        return f

    @contextlib.contextmanager
    def asking(index):
        allocator.private.asked = index
        try:
            yield
        finally:
            allocator.private.asked = -1

    def to(t, *args, **kwargs):
        """A tensor's. One that lies elsewhere is copied."""
        there = index((*args, *kwargs.values()))
        block = allocator.live.get(cdata(t)) if t.layout == torch.strided else None
        if there >= 0 and (t.is_cpu if block is None else block.segment.device != there):
            with asking(there):
                t = t.clone()
        return plain(t, *args, **kwargs)

    def waits(function):
        def f(*args, **kwargs):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.split(".")[0] == "memdiag" and not (LOSSES and caller == "memdiag._losses") and not (args and isinstance(args[0], torch.Tensor) and args[0].is_cpu):
                os.write(2, b"the stand-in: %s waits for the GPU\n" % caller.encode())
                os._exit(WAITED)
            return function(*args, **kwargs)

        return f

    for name in "item", "tolist", "numpy", "__bool__", "__float__", "__int__":
        setattr(torch.Tensor, name, waits(getattr(torch.Tensor, name)))
    torch.cuda.synchronize = waits(lambda device=None: None)
    torch.cuda.mem_get_info = waits(lambda device=None: (LIMIT - allocator.reserved(), LIMIT))
    from_numpy = torch.from_numpy
    torch.nn.Module.cuda = torch.Tensor.cuda = lambda self, device=None: self
    torch.Tensor.cpu = lambda self, *_, **__: allocator.copied(self)
    for function in Allocator.copied, torch.Tensor.cpu:  # are PyTorch's, so that who allocates is the program's line that calls them
        function.__code__ = function.__code__.replace(co_filename=torch._tensor.__file__)
    torch.Tensor.pin_memory = lambda self, device=None: allocator.on_cpu(self.detach().clone(), True)
    torch.from_numpy = lambda array: allocator.on_cpu(from_numpy(array), False)

    class Pool:
        made = 0

        def __init__(self, *_, **__):
            Pool.made += 1
            self.id = 0, Pool.made

    class Use:
        __wrapped__ = None  # as of contextlib's

        def __init__(self, pool, device=None):
            self.pool = pool

        def __enter__(self):
            allocator.private.id = self.pool.id

        def __exit__(self, *_):
            allocator.private.id = 0, 0

    def pointer(storage):
        block = allocator.live.get(storage._cdata) or allocator.cpu.get(storage._cdata)
        return block.address if block is not None else 0

    c = torch._C
    if KIND == "cuda":
        torch.cuda.MemPool, torch.cuda.use_mem_pool = Pool, Use
        torch.cuda.is_initialized, torch.cuda.is_current_stream_capturing = allocator.used, lambda: False
        torch.cuda._lazy_init = lambda: None
        torch.cuda.device_count = lambda: DEVICES
        c._cuda_getDevice, c._cuda_exchangeDevice, c._cuda_maybeExchangeDevice, c._cuda_setDevice = current, exchange, exchange, exchange
        c._cuda_resetPeakMemoryStats, c._cuda_emptyCache = allocator.reset_peak, allocator.empty
        torch.UntypedStorage.data_ptr = pointer
        c._cuda_memorySnapshot, c._cuda_memoryStats = allocator.snapshot, allocator.stats
        c._cuda_record_memory_history, c._cuda_isHistoryEnabled = allocator.record, lambda: allocator.rings is not None
        c._cuda_record_memory_history_legacy = allocator.legacy
        if COUNTS:
            newer = torch.cuda.memory._record_memory_history

            def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False):
                return newer(enabled, context, stacks, max_entries, device, clear_history)

            torch.cuda.memory._record_memory_history = _record_memory_history
            c._cuda_hostMemoryStats = lambda: {"active_bytes": {"current": allocator.pinned_now()}, "allocated_bytes": {"current": allocator.pinned}}
        c._cuda_attach_out_of_memory_observer = allocator.observers.append
        c._cuda_memoryMetadataSupported, c._cuda_setMemoryMetadata = lambda: True, allocator.stamp
        c._cuda_getMemoryMetadata = lambda: allocator.texts[getattr(allocator.metadata, "number", 0)]
        for name in FACTORIES:
            setattr(torch, name, anywhere(getattr(torch, name)))
        plain, torch.Tensor.to = anywhere(torch.Tensor.to), to
    else:
        real = torch.Tensor.device
        torch.Tensor.device = property(lambda t: real.__get__(t) if cdata(t) in allocator.cpu else torch.device(KIND))
    torch.Tensor.is_cpu = property(lambda t: t.layout == torch.strided and allocator.known(allocator.cpu, cdata(t)))
    torch.Tensor.is_cuda = property(lambda t: KIND == "cuda" and not t.is_cpu)
    Dispatch().__enter__()
    start = threading.Thread.start

    def starts(self):
        run = self.run

        def watched():
            with Dispatch():
                run()

        self.run = watched
        start(self)

    threading.Thread.start = starts
    # It is not the program's mode: who looks for those does not see it.
    depth, at = c._len_torch_dispatch_stack, c._get_dispatch_stack_at
    c._len_torch_dispatch_stack, c._get_dispatch_stack_at = lambda: max(depth() - 1, 0), lambda i: at(i + 1)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    importlib.machinery.PathFinder.find_spec = staticmethod(find_spec)
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
