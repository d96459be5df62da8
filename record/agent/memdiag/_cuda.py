"""PyTorch on CUDA: the allocator's own history and snapshots, in PyTorch's own format.

Recording begins at the first step after the program itself has used CUDA, never before, and nothing
here asks CUDA for anything: it would make a context in loader workers and before forks, and settle which
GPUs are visible before the program says.
"""

import collections
import os
import pickle
import sys

from ._blocks import Blocks

# Events that are kept. Stacks are Python's only: those of C++ take minutes to resolve at a dump.
EVENTS = 100_000
# Bytes that one of them takes at most: an entry of some 300, and of an allocation 16 for each of 64 frames.
EVENT = 1500


class Cuda:
    def __init__(self, agent, torch):
        self.agent, self.torch = agent, torch
        self.recording = self.refused = False
        self.end = None  # what ends the recording, where it is ours
        self.driver = None
        self.counters = None  # of each step; False where there are none to be had
        self.used = ()  # GPUs, at the last snapshot
        self.taken, self.blocks = None, Blocks()  # PyTorch's snapshot, which is to be written, and its blocks
        self.events = 0  # of PyTorch's record

    def begins(self):
        """Whether the program has begun to use CUDA, and nothing is recorded of it yet."""
        return not self.recording and not self.refused and self.torch.cuda.is_initialized() and not is_worker()

    def boundary(self):
        """Begins to record once the program has used CUDA; True from then on."""
        if self.begins():
            try:
                self.record()
            except Exception as e:  # of a PyTorch whose function is another
                self.refused = True
                self.agent.blind("cuda", "PyTorch %s does not record what CUDA allocates: %s: %s" % (self.torch.__version__, type(e).__name__, str(e)[:200]))
                return False
            self.recording = True
            self.observe()
        return self.recording

    def record(self):
        enabled = getattr(self.torch._C, "_cuda_isHistoryEnabled", None)
        if enabled is not None and enabled():
            return  # the program records by itself, with what it wants of it
        history, off = self.torch.cuda.memory._record_memory_history, None
        try:
            history("all", context="alloc", stacks="python", max_entries=EVENTS)
        except TypeError:  # before 2.1
            history(True, trace_alloc_max_entries=EVENTS, trace_alloc_record_context=True)
            off = False
        pid = os.getpid()
        # A forked child must not touch the allocator, whose lock another thread may have had.
        self.end = lambda: history(off) if os.getpid() == pid else None

    def observe(self):
        """What may be missing without harm: a snapshot before memory is out, and the driver's figures."""
        try:
            self.torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory)
        except Exception as e:
            self.agent.note("there will be no snapshot when memory runs out: %s: %s" % (type(e).__name__, str(e)[:200]))
        try:
            from . import _driver

            self.driver = _driver.Driver()
        except Exception:
            pass  # there is no NVML

    def count(self, step):
        """Adds to the run's series what the allocator has after a step, in the process that records its rank."""
        if not self.recording or self.counters is False or not self.agent.owner.get("step"):
            return
        try:
            if self.counters is None:
                from . import _counters

                path = os.path.join(self.agent.dir, "series%s.memdiag" % self.agent.suffix())
                self.counters = _counters.Counters(self.agent, path, self.torch.cuda.device_count(), self.torch._C._cuda_memoryStats)
            self.counters.count(step, self.agent.phase, self.used)
        except Exception as e:
            self.counters = False
            self.agent.note("the allocator's counters of each step are not recorded from step %d on: %s: %s" % (step, type(e).__name__, str(e)[:200]))

    def finish(self):
        if self.counters:
            self.counters.write()

    def stop(self):
        if self.end is not None:
            end, self.end = self.end, None
            end()

    def out_of_memory(self, device, allocation, total, free):
        """Called before the exception is raised."""
        self.agent.ticks += 1
        self.agent.guarded("out of memory", self.agent.take, self.agent.step + 1 if self.agent.step else None)
        self.finish()

    def look(self):
        """Takes PyTorch's snapshot."""
        self.taken = self.torch.cuda.memory._snapshot()
        self.blocks.look(self.taken["segments"])
        events = sum(map(len, self.taken["device_traces"]))
        self.agent.own.bytes += EVENT * (events - self.events)
        self.events = events

    def dump(self, step, rank, beside):
        """The bytes of a snapshot file: PyTorch's, then beside, which is what else is known of the process."""
        snapshot, self.taken = self.taken, None
        self.used = {s["device"] for s in snapshot["segments"]}
        header = {"agent": 1}
        if step is not None:
            header["step"] = step
        if rank is not None:
            header["rank"] = rank
        header.update(self.driver_says(snapshot["segments"]))
        header.update(self.allocator_says())
        return pickle.dumps({"memdiag": header, **snapshot}, protocol=4) + beside + b"\nmemdiag agent %016d\n" % len(beside)

    def allocator_says(self):
        """The most that was allocated on each GPU, also within steps, and how often memory was tried for again."""
        try:
            stats = [self.torch._C._cuda_memoryStats(i) for i in range(self.torch.cuda.device_count())]
            peaks = [s["allocated_bytes"]["all"].get("peak", 0) for s in stats]
            return {"peak": ",".join(map(str, peaks)), "retries": ",".join(str(s.get("num_alloc_retries", 0)) for s in stats)}
        except Exception:
            return {}  # snapshots tell what is live at their time

    def driver_says(self, segments):
        if self.driver is None:
            return {}
        try:
            reserved = collections.Counter()
            for s in segments:
                reserved[s["device"]] += s["total_size"]
            return self.driver.figures(reserved)
        except Exception as e:
            self.driver = None
            self.agent.note("the driver's figures of the GPU are not recorded from step %d on: %s: %s" % (self.agent.step, type(e).__name__, str(e)[:200]))
            return {}


def is_worker():
    """Whether this is a loader's worker."""
    return getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None) is not None
