"""PyTorch on a GPU: the allocator's own history and snapshots, in PyTorch's format.

Recording begins at the first step after the program itself has used the GPU, never before. Nothing here asks the driver for anything before
that: it would create a context in loader workers and before forks, and fix which GPUs are visible before the program chooses.
"""

import collections
import functools
import pickle
import sys

from . import _accelerator, _communicators
from ._backward import Backward
from ._blocks import Blocks
from ._budget import Budget
from ._clock import work
from ._real import os
from ._ring import Ring

# What snapshots with the record may cost: seconds at the start, plus a share of the time. Listing a hundred thousand events takes 0.7 s,
# the blocks alone 0.2 ms. When the budget is spent, snapshots have blocks alone.
ALLOWANCE, SHARE = 0.12, 0.005
# A snapshot long after the last one with the record has the record in any case, if that takes no more than this share of the time between
# them: with few snapshots, the record tells when blocks were allocated.
FAR = 0.01
# The device name of pinned memory. It is the same in snapshot.PinnedCounts.
PINNED = "pinned host memory, also in cpu:0"
# Keys of PyTorch's snapshot that hold the record.
TRACES = "device_traces", "host_traces"
# Our names for counts of the allocator, and PyTorch's.
COUNTS = ("retries", "num_alloc_retries"), ("ooms", "num_ooms")


class Cuda:
    def __init__(self, agent, torch):
        self.agent, self.torch = agent, torch
        self.possible = _accelerator.find(torch)
        self.gpu = None  # the accelerator that is recorded
        self.recording = self.refused = False
        self.tells = False  # PyTorch can say whether its record is on
        self.end = None  # ends PyTorch's record if we began it; else None
        self.driver = self.log = None  # figures of the driver and of NCCL
        self.counters = None  # counters of each step; False if there are none
        self.used = ()  # GPUs, at the last snapshot
        self.taken, self.blocks = None, Blocks()  # PyTorch's snapshot, until it is written, and its blocks
        self.backward = Backward()
        self.pinned = False  # whether there has been pinned memory
        self.ring, self.charged = Ring(_accelerator.EVENTS), 0  # PyTorch's record, and how many bytes of it have been counted as ours
        # The budget of snapshots with the record, and the time of the last one. asked: the next snapshot has the record in any case. whole:
        # the snapshot just taken has it. took: the seconds that it took.
        self.records, self.since, self.asked, self.whole, self.took = Budget(agent, ALLOWANCE, SHARE), 0.0, False, True, 0.0
        self.crowded = False  # the disk had no room for a snapshot with the record

    def begins(self):
        """Whether the program has begun to use a GPU that is not recorded yet."""
        if self.recording or self.refused:
            return False
        self.gpu = next((gpu for gpu in self.possible if gpu.used()), None)
        return self.gpu is not None and not is_worker()

    def boundary(self):
        """Begins to record once the program has used a GPU; returns True from then on."""
        if self.begins():
            try:
                self.gpu.ask()
                self.record()
            except Exception as e:  # another version of PyTorch may have another function
                self.refused = True
                self.agent.blind(self.gpu.name, "PyTorch %s does not record what %s allocates: %s: %s" % (self.torch.__version__, self.gpu.name.upper(), type(e).__name__, str(e)[:200]))
                return False
            self.recording = True
            self.observe()
            self.blocks.workspace = self.workspace()
        if self.recording:
            if self.ended():
                self.go_on()
            self.gpu.stamp(self.agent.step)
        return self.recording

    def go_on(self):
        """Restarts PyTorch's record after the program has ended it. Blocks allocated meanwhile have no stack."""
        self.record()
        self.backward.older, self.ring = None, Ring(_accelerator.EVENTS)
        self.agent.note("the program stopped PyTorch's memory history of %s; memdiag started it again" % self.gpu.name.upper())

    def ended(self):
        """Whether the program has ended PyTorch's record."""
        return self.tells and not self.gpu.records()

    def record(self):
        self.tells = bool(self.gpu.records())
        if self.tells:
            return
        end, pid = self.gpu.record(), os.getpid()
        self.tells = bool(self.gpu.records())
        # A forked child must not touch the allocator: another thread may have held its lock at the fork.
        self.end = lambda: end() if os.getpid() == pid else None

    def observe(self):
        """Starts what recording can do without: a snapshot before memory runs out, and the driver's figures."""
        try:
            self.gpu.observe(self.out_of_memory)
        except Exception as e:
            self.agent.note("there will be no snapshot when memory runs out: %s: %s" % (type(e).__name__, str(e)[:200]))
        try:
            from . import _driver

            self.driver = _driver.of(self.torch, self.gpu.name)
        except Exception:
            pass  # the driver's library is missing

    def workspace(self):
        try:
            return self.gpu.workspace()
        except Exception:
            return 0  # this PyTorch does not say which GPU it is

    def count(self, step):
        """Adds the allocator's counters after a step to the run's series. Only the process that records its rank does so."""
        if not self.recording or self.counters is False or not self.agent.owner.get("step"):
            return
        try:
            if self.counters is None:
                from . import _counters

                path = os.path.join(self.agent.dir, "series%s.memdiag" % self.agent.suffix())
                self.counters = _counters.Counters(self.agent, path, self.gpu)
            self.counters.count(step, self.agent.phase, self.used)
        except Exception as e:
            self.counters = False
            self.agent.note("the allocator's counters of each step are not recorded from step %d on: %s: %s" % (step, type(e).__name__, str(e)[:200]))

    def passes(self, step):
        """Handles a step at whose end nothing else is to do."""
        if self.recording:
            if self.ended():
                self.agent.guarded("step", self.go_on)
            self.gpu.stamp(step)
            self.count(step)

    def finish(self):
        if self.counters:
            self.counters.write()

    def stop(self):
        if self.end is not None:
            end, self.end = self.end, None
            end()

    def out_of_memory(self, device, allocation, total, free):
        """Called before PyTorch raises the exception."""
        self.agent.ticks += 1
        self.asked = self.agent.spares = True
        self.agent.guarded("out of memory", self.agent.take, self.agent.step + 1 if self.agent.step else None)
        self.agent.spares = False
        self.finish()

    def look(self):
        """Takes PyTorch's snapshot, with the record if that is cheap enough or was asked for."""
        begun = work()
        far = self.agent.overdue() and self.records.last <= FAR * (self.agent.elapsed() - self.since)
        self.whole, self.asked = not self.gpu.light or self.asked or not self.crowded and (far or self.records.affords()), False
        self.taken = self.gpu.snapshot(self.whole)
        if self.end is not None:
            self.charge()
        self.backward.complete(self.taken, self.gpu.records() is not False, self.blocks.workspace)
        self.took = work() - begun
        self.blocks.look(self.taken["segments"], self.taken.get("host_segments", ()))

    def charge(self):
        """Counts the memory of PyTorch's record as ours, because we began it."""
        if self.whole:
            self.ring.learn(self.taken["device_traces"])
        try:
            takes = self.ring.bytes([self.gpu.stats(i) for i in range(self.gpu.count())], 1 if self.gpu.skips() else 2)
        except Exception:
            return  # without counts, the record's memory is counted as growth of the process
        self.agent.own.bytes += takes - self.charged
        self.charged = takes

    def dump(self, step, rank, beside):
        """Returns the bytes of a snapshot file: PyTorch's part, then beside, which has what else is known of the process. Also returns a
        function for a full disk, which makes the bytes without the record; None if the snapshot has no record."""
        begun, (snapshot, self.taken) = work(), (self.taken, None)
        self.used = {s["device"] for s in snapshot["segments"]}
        header = {"agent": 1, "accelerator": self.gpu.name}
        if not self.whole:
            header["light"] = 1
        if self.end is not None and self.gpu.skips():
            header["skips"] = 1
        if step is not None:
            header["step"] = step
        if rank is not None:
            header["rank"] = rank
        header.update(self.driver_says(snapshot["segments"]))
        header.update(self.allocator_says())
        header.update(self.beside())
        text = written(header, snapshot, beside)
        self.took += work() - begun
        if not self.whole:
            return text, None
        light = {**header, "light": 1}, {**snapshot, **{name: [] for name in TRACES if name in snapshot}}, beside
        return text, functools.partial(self.lighter, *light)

    def lighter(self, *light):
        self.crowded = True
        return written(*light)

    def fill(self, snapshot):
        """Adds PyTorch's counts of pinned memory, once there is some. Snapshots count the program's tensors in it as tensors of the CPU."""
        try:
            now = self.gpu.pinned()
        except Exception:
            return
        if now and (self.pinned or any(now)):
            self.pinned = True
            snapshot.device("cpu", PINNED, index=1, requested=now[0], allocated=now[0], active=now[0], reserved=now[1])

    def spent(self):
        """The seconds of the last snapshot that the budget of snapshots with the record pays for."""
        if not self.whole or not self.gpu.light:
            return 0.0
        self.records.spent += self.took
        self.records.last, self.since = self.took, self.agent.elapsed()
        return self.took

    def allocator_says(self):
        """The peak of each GPU's allocated bytes, also within steps; how often the allocator retried; and how often it ran out of memory."""
        try:
            stats = [self.gpu.stats(i) for i in range(self.gpu.count())]
            peaks = [s["allocated_bytes"]["all"].get("peak", 0) for s in stats]
            return {"peak": ",".join(map(str, peaks)), **{name: ",".join(str(s.get(key, 0)) for s in stats) for name, key in COUNTS}}
        except Exception:
            return {}  # snapshots still have what is live at their time

    def beside(self):
        try:
            self.log = self.log or _communicators.Log()
            return self.log.figures()
        except Exception as e:
            return self.agent.note("NCCL's log is not read: %s: %s" % (type(e).__name__, str(e)[:200])) or {}

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


def written(header, snapshot, beside):
    return pickle.dumps({"memdiag": header, **snapshot}, protocol=4) + beside + b"\nmemdiag agent %016d\n" % len(beside)


def is_worker():
    """Whether this process is a worker of a DataLoader."""
    return getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None) is not None
