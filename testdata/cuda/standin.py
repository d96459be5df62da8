"""Runs a program as if its tensors lay on a GPU: standin.py PROGRAM [ARGUMENT …]

PyTorch is the real one, for the CPU. What it asks of CUDA's allocator is answered by a stand-in: storages lie at
addresses inside of blocks of segments, by PyTorch's rules for sizes; blocks that are freed stay pending up to the
next sweep, and are used again.
"""

import bisect
import importlib.machinery
import runpy
import struct
import sys
import time

SMALL, LARGE, ROUND = 2 << 20, 20 << 20, 512
OFTEN = 200  # storages between two sweeps
# An event of the record, which is a ring: action, address, size, time, stack.
EVENT, EVENTS = struct.Struct("<BQQQI"), 100_000
ACTIONS = "alloc", "free_requested", "free_completed", "segment_alloc"


class Finder:
    """Has torch.version say that PyTorch was built for CUDA."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch.version":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.cuda = "13.0"

        spec.loader.exec_module = exec_module
        return spec


class Block:
    def __init__(self, address, size, segment):
        self.address, self.size, self.segment, self.state = address, size, segment, "inactive"
        self.asked, self.stack = 0, 0


class Allocator:
    def __init__(self, torch):
        self.torch, self.segments = torch, []
        self.ring, self.happened = bytearray(EVENT.size * EVENTS), 0  # as in PyTorch no object of Python's
        self.stacks, self.numbers = [()], {(): 0}
        self.live, self.pending = {}, []  # by StorageImpl
        self.idle = []  # of each free block its size, address, and itself
        self.next, self.made, self.frames = 0x7F0000000000, 0, {}
        self.records = False

    def event(self, action, address, size, stack=0):
        if self.records:
            EVENT.pack_into(self.ring, EVENT.size * (self.happened % EVENTS), ACTIONS.index(action), address, size, int(time.time() * 1e6), stack)
            self.happened += 1

    def trace(self):
        for i in range(max(0, self.happened - EVENTS), self.happened):
            action, address, size, when, stack = EVENT.unpack_from(self.ring, EVENT.size * (i % EVENTS))
            yield {"action": ACTIONS[action], "addr": address, "size": size, "stream": 0, "time_us": when, "frames": list(self.stacks[stack])}

    def stack(self):
        frame, out = sys._getframe(), []
        while frame is not None:
            f = frame.f_code.co_filename
            if f != __file__ and not f.startswith("<frozen") and (out or "/torch/_compile.py" not in f and "/torch/_dynamo/" not in f):
                key = f, frame.f_lineno, frame.f_code.co_name
                out.append(self.frames.setdefault(key, {"name": key[2], "filename": key[0], "line": key[1]}))
            frame = frame.f_back
        number = self.numbers.setdefault(tuple(map(id, out)), len(self.stacks))
        if number == len(self.stacks):
            self.stacks.append(out)
        return number

    def sweep(self):
        """Frees what nobody has any more; what was freed at the sweep before can be used again."""
        for block in self.pending:
            self.release(block)
            self.event("free_completed", block.address, block.asked)
        self.pending = []
        for address, block in list(self.live.items()):
            if self.torch.UntypedStorage._expired(address):
                self.torch.UntypedStorage._free_weak_ref(address)
                del self.live[address]
                self.event("free_requested", block.address, block.asked)
                block.state = "active_pending_free"
                self.pending.append(block)

    def add(self, storage):
        address, size = storage._cdata, storage.nbytes()
        if address in self.live and not self.torch.UntypedStorage._expired(address) or not size:
            return
        self.made += 1
        if self.made % OFTEN == 0:
            self.sweep()
        rounded = -(-size // ROUND) * ROUND
        i = bisect.bisect_left(self.idle, (rounded,))
        if i == len(self.idle):
            self.segment(rounded)
            i = bisect.bisect_left(self.idle, (rounded,))
        _, _, block = self.idle.pop(i)
        if block.size > rounded:
            rest = Block(block.address + rounded, block.size - rounded, block.segment)
            block.segment.insert(block.segment.index(block) + 1, rest)
            block.size = rounded
            self.release(rest)
        block.state, block.asked = "active_allocated", size
        block.stack = self.stack() if self.records else 0
        self.live[storage._weak_ref()] = block
        self.event("alloc", block.address, size, block.stack)

    def release(self, block):
        block.state = "inactive"
        bisect.insort(self.idle, (block.size, block.address, block))

    def segment(self, size):
        whole = SMALL if size <= 1 << 20 else LARGE if size < 10 << 20 else -(-size // SMALL) * SMALL
        blocks = []
        blocks.append(Block(self.next, whole, blocks))
        self.segments.append({"address": self.next, "total_size": whole, "blocks": blocks})
        self.event("segment_alloc", self.next, whole)
        self.next += whole + SMALL
        self.release(blocks[0])

    def snapshot(self, device=None):
        self.sweep()
        out = []
        for s in self.segments:
            blocks = [{"address": b.address, "size": b.size, "requested_size": b.asked if b.state != "inactive" else 0, "state": b.state,
                       "frames": list(self.stacks[b.stack]) if b.state != "inactive" else []} for b in s["blocks"]]
            live = [b for b in s["blocks"] if b.state == "active_allocated"]
            active = [b for b in s["blocks"] if b.state != "inactive"]
            out.append({"device": 0, "address": s["address"], "total_size": s["total_size"], "allocated_size": sum(b.size for b in live),
                        "active_size": sum(b.size for b in active), "requested_size": sum(b.asked for b in active), "stream": 0,
                        "segment_type": "small" if s["total_size"] == SMALL else "large", "segment_pool_id": (0, 0),
                        "is_expandable": False, "frames": [], "blocks": blocks})
        return {"segments": out, "device_traces": [list(self.trace())], "allocator_settings": {}}

    def stats(self, device):
        live = list(self.live.values())
        now = {"requested": sum(b.asked for b in live), "allocated": sum(b.size for b in live), "active": sum(b.size for b in [*live, *self.pending]),
               "reserved": sum(s["total_size"] for s in self.segments)}
        return {name + "_bytes": {"all": {"current": n}} for name, n in now.items()}


def install(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    allocator = Allocator(torch)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for t in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(t, torch.Tensor) and t.layout == torch.strided:
                    allocator.add(torch.Tensor.untyped_storage(t))
            return result

    def record(enabled="all", context="all", stacks="all", max_entries=sys.maxsize):
        allocator.records = bool(enabled)

    def pointer(storage):
        ref = storage._weak_ref()
        torch.UntypedStorage._free_weak_ref(ref)
        return allocator.live[ref].address if ref in allocator.live else 0

    torch.cuda.is_initialized = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.memory._snapshot = allocator.snapshot
    torch.cuda.memory._record_memory_history = record
    torch._C._cuda_isHistoryEnabled = lambda: False
    torch._C._cuda_attach_out_of_memory_observer = lambda observer: None
    torch._C._cuda_memoryStats = allocator.stats
    torch.UntypedStorage.data_ptr = pointer
    torch.Tensor.is_cpu = property(lambda tensor: False)
    torch.Tensor.is_cuda = property(lambda tensor: True)
    Mode().__enter__()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.meta_path.insert(0, Finder)
    import torch

    install(torch)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
