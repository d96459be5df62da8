"""An accelerator whose allocator records itself as CUDA's does: torch.cuda, torch.xpu, or an extension with the same functions.

PyTorch's functions are inspected for the arguments that they have; no version is compared. Nothing that is called before the program has
used the accelerator starts a driver: that would fix which GPUs are visible, and break forks.
"""

import inspect
import re

from ._real import os

# Events that are kept. Stacks are Python's only: resolving C++ stacks takes minutes when the record is dumped.
EVENTS = 100_000
# Arguments that only some versions have: to also record pinned memory, and to leave out the first of the two events of each free.
NEWER = {"record_pinned_host_memory": True, "skip_actions": ["free_requested"]}
# Bytes of the workspace that PyTorch gives cuBLAS for each handle and stream: on Hopper and later GPUs, and on older ones. PARTS: how
# CUBLAS_WORKSPACE_CONFIG asks for others, as the size in KiB and the number of parts.
WORKSPACE, HOPPER, WORKSPACE_BEFORE, PARTS = 32 << 20, 9, (8 << 20) + (128 << 10), re.compile(r":(\d{1,9}):(\d{1,4})")
# PyTorch's name for a backend that no extension has named.
UNNAMED = "privateuseone"
# The beginning of the text that stamps an allocation with its step.
STAMP = '{"memdiag_step":'


def find(torch):
    """The accelerators of this PyTorch whose allocators can record; none without PyTorch."""
    if torch is None:
        return []
    names, core = [], getattr(torch, "_C", None)  # not there while PyTorch is being imported
    if torch.version.cuda or getattr(torch.version, "hip", None):
        names.append("cuda")
    if getattr(core, "_has_xpu", False):
        names.append("xpu")
    renamed = getattr(core, "_get_privateuse1_backend_name", lambda: UNNAMED)()
    if renamed != UNNAMED:
        names.append(renamed)
    return [Accelerator(torch, n) for n in names if recorder(torch, n)]


def recorder(torch, name):
    """The module with the functions that record an accelerator's allocator, or None. Extensions may have them beside the other functions."""
    module = getattr(torch, name, None)
    return next((m for m in (getattr(module, "memory", None), module) if hasattr(m, "_record_memory_history") and hasattr(m, "_snapshot")), None)


class Accelerator:
    def __init__(self, torch, name):
        self.torch, self.name, self.module, self.memory = torch, name, getattr(torch, name), recorder(torch, name)
        self.light = self.stamps = False
        self.wants, self.old = {}, None

    def ask(self):
        """Finds out which arguments PyTorch's functions have."""
        takes = arguments(self.memory._record_memory_history)
        self.wants = {"context": "alloc", "stacks": "python", "max_entries": EVENTS}
        self.wants.update((k, v) for k, v in NEWER.items() if k in takes)
        # Before 2.1, the arguments were others.
        self.old = {"trace_alloc_max_entries": EVENTS, "trace_alloc_record_context": True} if "trace_alloc_max_entries" in takes and "max_entries" not in takes else None
        self.light = "include_traces" in arguments(getattr(self.memory, "memory_snapshot", None))

    def c(self, what):
        """A function of PyTorch's C extension, or None."""
        return getattr(self.torch._C, "_%s_%s" % (self.name, what), None)

    def used(self):
        return self.module.is_initialized()

    def records(self):
        """Whether PyTorch records, for the program or for us; None if it cannot say."""
        enabled = self.c("isHistoryEnabled")
        return None if enabled is None else enabled()

    def record(self):
        """Starts the record, and returns a function that ends it."""
        history = self.memory._record_memory_history
        if self.old:
            history(True, **self.old)
            return lambda: history(False)
        history("all", **self.wants)
        supported, get = self.c("memoryMetadataSupported"), self.c("getMemoryMetadata")
        self.stamps = bool(get and self.c("setMemoryMetadata") and (supported is None or supported()))  # 2.10 to 2.13 cannot be asked
        return lambda: history(None)

    def skips(self):
        """Whether the record leaves out events of requested frees."""
        return bool(self.wants.get("skip_actions"))

    def stamp(self, step):
        """Stamps what this thread allocates from now on with the step, unless the program stamps it itself."""
        if self.stamps and (not (before := self.c("getMemoryMetadata")()) or before.startswith(STAMP)):
            self.c("setMemoryMetadata")("%s%d}" % (STAMP, step))

    def observe(self, observer):
        attach = self.c("attach_out_of_memory_observer") or self.c("attachOutOfMemoryObserver")
        if attach is None:
            raise AttributeError("PyTorch %s has no observer for %s" % (self.torch.__version__, self.name))
        attach(observer)

    def snapshot(self, whole):
        """PyTorch's snapshot. If not whole, it lacks the record of allocations, if PyTorch can leave that out."""
        if whole or not self.light:
            return self.memory._snapshot()
        take = self.c("memorySnapshot")
        return take((0, 0, False)) if take else {"segments": self.memory.memory_snapshot(include_traces=False), "device_traces": []}

    def count(self):
        return self.module.device_count()

    def workspace(self):
        """Bytes of the workspace that PyTorch gives cuBLAS; 0 if there is none of a known size."""
        if self.name != "cuda" or getattr(self.torch.version, "hip", None):
            return 0
        parts = PARTS.findall(os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
        if parts:
            return sum(1024 * int(size) * int(number) for size, number in parts)
        return WORKSPACE if self.module.get_device_capability()[0] >= HOPPER else WORKSPACE_BEFORE

    def pinned(self):
        """Bytes of pinned memory that the program uses, and that PyTorch has for it, including free ones. None if PyTorch has no such
        counts, or records the blocks themselves."""
        ask = None if "record_pinned_host_memory" in self.wants else self.c("hostMemoryStats")
        now = {name: each["current"] for name, each in ask().items() if name.endswith("_bytes")} if ask else {}
        if "active_bytes" in now:  # else free blocks count as reserved
            return now["active_bytes"], now["allocated_bytes"]
        return (now["allocated_bytes"], now["reserved_bytes"]) if "reserved_bytes" in now else None

    def stats(self, index):
        return (self.c("memoryStats") or self.module.memory_stats_as_nested_dict)(index)


def arguments(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
