"""PyTorch on a GPU: the allocator's own history and snapshots, in PyTorch's own format.

Recording begins at the first step after the program itself has used the GPU, never before, and nothing
here asks the driver for anything: it would make a context in loader workers and before forks, and settle which
GPUs are visible before the program says.
"""

import collections
import functools
import os
import pickle
import sys

from . import _accelerator, _communicators
from ._backward import Backward
from ._blocks import Blocks
from ._budget import Budget
from ._clock import work
from ._ring import Ring

# What snapshots with the record may cost: so many seconds, and this share of the time. A hundred thousand events take 0.7 s to
# list, beside 0.2 ms for the blocks alone; where that is spent, snapshots have blocks alone.
ALLOWANCE, SHARE = 0.12, 0.005
# A snapshot long after the last one with the record has it in any case, where that takes no more than this share of the time between: if
# there are few snapshots, the record tells when blocks came.
FAR = 0.01
# The name of the device of pinned memory, in snapshot.PinnedCounts, too.
PINNED = "pinned host memory, also in cpu:0"
# What a snapshot has of the record.
TRACES = "device_traces", "host_traces"
# Counts of the allocator's, and what they are called here.
COUNTS = ("retries", "num_alloc_retries"), ("ooms", "num_ooms")


class Cuda:
    def __init__(self, agent, torch):
        self.agent, self.torch = agent, torch
        self.possible = _accelerator.find(torch)
        self.gpu = None  # the one that is recorded
        self.recording = self.refused = False
        self.tells = False  # PyTorch says whether its record is on
        self.end = None  # what ends the recording, where it is ours
        self.driver = self.log = None  # what the driver and NCCL say
        self.counters = None  # of each step; False where there are none to be had
        self.used = ()  # GPUs, at the last snapshot
        self.taken, self.blocks = None, Blocks()  # PyTorch's snapshot, which is to be written, and its blocks
        self.backward = Backward()
        self.pinned = False  # there has been pinned memory
        self.ring, self.charged = Ring(_accelerator.EVENTS), 0  # PyTorch's record, and the bytes that we have counted as ours of it
        # What snapshots with the record cost, and when the last one was; whether the next is to have it in any case, and the one that
        # was taken does; and the seconds that one took.
        self.records, self.since, self.asked, self.whole, self.took = Budget(agent, ALLOWANCE, SHARE), 0.0, False, True, 0.0
        self.crowded = False  # the disk had no room for one with the record

    def begins(self):
        """Whether the program has begun to use a GPU, and nothing is recorded of it yet."""
        if self.recording or self.refused:
            return False
        self.gpu = next((gpu for gpu in self.possible if gpu.used()), None)
        return self.gpu is not None and not is_worker()

    def boundary(self):
        """Begins to record once the program has used a GPU; True from then on."""
        if self.begins():
            try:
                self.gpu.ask()
                self.record()
            except Exception as e:  # of a PyTorch whose function is another
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
        """Begins PyTorch's record again where the program has ended it. What came meanwhile has no stack."""
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
        # A forked child must not touch the allocator, whose lock another thread may have had.
        self.end = lambda: end() if os.getpid() == pid else None

    def observe(self):
        """What may be missing without harm: a snapshot before memory is out, and the driver's figures."""
        try:
            self.gpu.observe(self.out_of_memory)
        except Exception as e:
            self.agent.note("there will be no snapshot when memory runs out: %s: %s" % (type(e).__name__, str(e)[:200]))
        try:
            from . import _driver

            self.driver = _driver.of(self.torch, self.gpu.name)
        except Exception:
            pass  # the driver has no library for it

    def workspace(self):
        try:
            return self.gpu.workspace()
        except Exception:
            return 0  # of a PyTorch that does not say which GPU it is

    def count(self, step):
        """Adds to the run's series what the allocator has after a step, in the process that records its rank."""
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
        """Takes note of a step at whose end nothing else is to be done."""
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
        """Called before the exception is raised."""
        self.agent.ticks += 1
        self.asked = self.agent.spares = True
        self.agent.guarded("out of memory", self.agent.take, self.agent.step + 1 if self.agent.step else None)
        self.agent.spares = False
        self.finish()

    def look(self):
        """Takes PyTorch's snapshot: with the record where that is cheap enough, or was asked for."""
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
        """Counts as ours what PyTorch's record takes, which we had it begin."""
        if self.whole:
            self.ring.learn(self.taken["device_traces"])
        try:
            takes = self.ring.bytes([self.gpu.stats(i) for i in range(self.gpu.count())], 1 if self.gpu.skips() else 2)
        except Exception:
            return  # there are no counts: what it takes is called the process's growth
        self.agent.own.bytes += takes - self.charged
        self.charged = takes

    def dump(self, step, rank, beside):
        """The bytes of a snapshot file: PyTorch's, then beside, which is what else is known of the process. And what makes those without
        the record, where there is one and the disk has no room for it; else None."""
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
        """Adds what PyTorch counts of pinned memory, once there is some. The program's tensors in it are among those of the CPU."""
        try:
            now = self.gpu.pinned()
        except Exception:
            return
        if now and (self.pinned or any(now)):
            self.pinned = True
            snapshot.device("cpu", PINNED, index=1, requested=now[0], allocated=now[0], active=now[0], reserved=now[1])

    def spent(self):
        """The seconds of the last snapshot that the budget of those with the record bears."""
        if not self.whole or not self.gpu.light:
            return 0.0
        self.records.spent += self.took
        self.records.last, self.since = self.took, self.agent.elapsed()
        return self.took

    def allocator_says(self):
        """The most that was allocated on each GPU, also within steps, how often memory was tried for again, and how often in vain."""
        try:
            stats = [self.gpu.stats(i) for i in range(self.gpu.count())]
            peaks = [s["allocated_bytes"]["all"].get("peak", 0) for s in stats]
            return {"peak": ",".join(map(str, peaks)), **{name: ",".join(str(s.get(key, 0)) for s in stats) for name, key in COUNTS}}
        except Exception:
            return {}  # snapshots tell what is live at their time

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
    """Whether this is a loader's worker."""
    return getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None) is not None
