"""The agent: when to look at memory, what that may cost, and where the result goes.

Sources (_torch, _heap, …) know what to look at. Every entry from the program into the agent is
guarded: an error becomes a note in the agent's report, and after a few the agent stops.
"""

import _thread
import contextlib
import errno
import json
import os
import re
import sys
import time
import zlib

from . import _at, _batches, _ceased, _claims, _exit, _role
from ._forks import after_fork
from ._growth import grows
from ._handlers import raised
from ._interrupts import Held
from ._marks import number
from ._own import Own, waited
from ._role import below, helps, role, started, title

work = time.thread_time  # of the agent itself: on a busy machine the clock runs on without it

# Snapshots that are kept: when there are more, every second one goes and the interval doubles.
MOST = 32
# What snapshots may cost: so many seconds, and this share of the time since the first step.
ALLOWANCE, SHARE = 0.12, 0.015
# The same share while Python's heap is traced for good, which was asked for.
TRACED_SHARE = 0.06
# However much they have cost, there is another one when so many times the steps, or the time, have passed, if it takes
# no more than this share of the time since the one before, or all at the last of these distances no more than so many
# seconds. So the last one is near the end of a run, however long that is.
AGAIN, AGAIN_ALLOWANCE = ((1.1, 0.03), (1.3, 0.1)), 0.4
# The same for those by the clock: a program must give enough of them to be judged, however short it is and busy the
# machine.
TICKS_ALLOWANCE, TICKS_SHARE = 0.25, 0.04
# After so many of them the rest are spread over the run, each at most this share of its time after the one before.
FIRST_TICKS, SPARSEST = 8, 0.125
# How many steps a snapshot waits for one that is watched to its end, or for an evaluation; and which part of all.
WAIT, WAIT_PART = 8, 32
# Where no steps count it waits for so many seconds that are watched.
BRIEF = 0.02
# One that is due and too dear may come late by this part of the steps.
LATE = 64
# The same for a process that others started, once it grows.
CHILD_ALLOWANCE, CHILD_SHARE = _claims.EACH, 0.03
# So many times as much in an experiment, where runs are compared that all are recorded so.
DEAR = 4
# Seconds after which one that grows and may not be recorded for now asks again, at first and at most.
REFUSED, REFUSED_MOST = 2.0, 60.0
# Seconds after which a forked process has the name that is given to it, and how many files there are of such at most.
NAMED, MOST_FILES = 0.3, 1000
# The disk, or the user's part of it, is full.
FULL = errno.ENOSPC, errno.EDQUOT
# A snapshot by the clock; what is named in any other way is the user's.
TICK = re.compile(r"snapshot_t[0-9]+(_rank[0-9]+)?\.(json|pickle|pb\.gz|memdiag)")
# Variables that give a rank, and digits of it at most; memdiag reads them as well.
RANKS, RANK_DIGITS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"), 9
# Kinds of events that are counted.
MOST_EVENTS = 32
# Snapshots after which a run may show a leak.
ENOUGH = 5
# After so many errors the agent stops.
PATIENCE = 3
COMPRESS_FROM = 64 << 10
# A run is its owner's alone; what is opened to be written is no link that somebody else put there.
PERMISSIONS = 0o600
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def is_rank(value):
    return value.isascii() and value.isdigit() and len(value) <= RANK_DIGITS


def rank_variable():
    """The variable that gives this process its rank, as an environment has it: "RANK=0"; "" for none."""
    return next(("%s=%s" % (name, value) for name in RANKS if is_rank(value := os.environ.get(name, ""))), "")


class Stacks:
    """Frames and stacks of one snapshot, interned. Stack 0 is "no stack"."""

    def __init__(self):
        self.frames, self.stacks = [], [[]]
        self._frame, self._stack = {}, {}

    def known(self, key):
        """The number of a stack that was added; None else."""
        return self._stack.get(key)

    def add(self, key, frames):
        """Returns the number of the stack of a hashable key; frames() gives it, innermost first."""
        n = self._stack.get(key)
        if n is None:
            ids = []
            for f in frames():
                i = self._frame.get(f)
                if i is None:
                    i = self._frame[f] = len(self.frames)
                    self.frames.append(f)
                ids.append(i)
            n = self._stack[key] = len(self.stacks) if ids else 0
            if ids:
                self.stacks.append(ids)
        return n


class Snapshot:
    """What sources fill in, and what is written."""

    def __init__(self):
        self.stacks = Stacks()
        self.devices, self.notes, self.holders, self.at, self.anew = [], [], [], [], []
        self.blocks = {"device": [], "address": [], "size": [], "stack": [], "birth": [], "count": [], "category": []}
        self.categories = {}  # of blocks on GPUs, which are not among these, by address
        self.producer = "Python"

    def device(self, kind, name, space=0, limit=None, index=0, **meters):
        """Adds a device; space is the same number for as long as addresses on it mean the same."""
        self.devices.append({"kind": kind, "index": index, "name": name, "space": space, "limit": limit, "meters": meters})
        return len(self.devices) - 1

    def allocated(self):
        """Sums up what the blocks so far take, by device."""
        totals = dict.fromkeys(self.blocks["device"], 0)
        for device, size in zip(self.blocks["device"], self.blocks["size"]):
            totals[device] += size
        for device, meters in enumerate(d["meters"] for d in self.devices):
            meters["allocated"] = totals.get(device, 0)

    def add(self, device, address, size, stack, birth, count, category=0):
        """Adds a row: a block, or with a count of more than 1 so many of this size together; category is one of _categories, 0 for
        none."""
        b = self.blocks
        b["device"].append(device)
        b["address"].append(address)
        b["size"].append(size)
        b["stack"].append(stack)
        b["birth"].append(birth)
        b["count"].append(count)
        b["category"].append(category)


class Agent:
    def __init__(self, settings):
        from . import _code, _losses, _shared

        self.code, self.shared, self.losses = _code.Code(self), _shared.Shared(self), _losses.Losses(self)
        self.peaks = None  # from the first mark on that tells the size of an input
        self.dir = settings["dir"]
        self.fixed = int(settings.get("every") or 0)  # steps between snapshots; 0 is to choose
        self.seconds = float(settings.get("seconds") or 0)  # … or seconds; 0 is not by time
        self.every = self.fixed or 1
        self.settings = settings
        self.epoch = time.time() - time.monotonic()  # of a clock that nobody sets
        self.began = None  # the times of the first mark: the clock's and the processor's
        # Seconds that snapshots took, all of them and the last one, and when that one was.
        self.spent, self.last, self.since, self.ran_before = 0.0, 0.0, 0.0, 0.0
        self.step = 0
        self.events = {}  # phases, epochs and others that have begun, by name
        self.phase, self.epoch_number = "", None  # the epoch that goes on; None where the program marks none
        self.explicit = False  # the program counts the steps
        self.written = []  # of [step or tick, path]
        self.spares = False  # the snapshot that is being taken is not thinned out at once
        self.ticks = 0
        self.waited = 0  # steps, for one to be watched
        self.owner = {}  # by kind of mark, "step" or "tick": whether this process records them
        self.ceased = _ceased.Ceased(self)
        self.rank = self.inherited = None  # the latter is that of the process that forked this one
        self.gone = False  # another process has taken over from this one
        self.number = 0  # of a process that is recorded beside the one of its rank; 0 for that one
        self.batches = None  # of a loader's worker, how many it has made since it grows, in a list
        self.counted = -1  # … at the last look
        self.stopped = False
        self.asleep, self.nap = False, None  # in a child, until it trains or grows
        self.child = False  # forked, and trains
        self.busy = False
        self.entered, self.took = 0.0, 0.0  # when the agent's work began, and what all before took
        self.interrupting = False  # the program, at whatever it does
        self.sources = []
        self.own = Own(self)
        self.canary = self.intervention = self.trackers = None
        self.notes = {}  # text: times
        self.status = 0  # that the program gave to os._exit
        self.unseen = []  # what of the program's memory is not recorded
        self.packages = None  # as the program had imported them at its end
        self.errors = 0
        self.pid = os.getpid()
        self.attached = None  # where the program ran before the agent came
        self.undo = []  # what takes back what the agent has changed in the program

    # What the program's events call.

    def guarded(self, what, f, *args):
        """Calls f unless the agent is stopped or at work in a thread of the program's; its errors become notes, but not
        the program's own."""
        if self.stopped or self.busy and (not self.ticker.wait() or self.busy):
            return None
        self.busy, self.entered = True, work()
        try:
            with Held():
                return f(*args)
        except RecursionError:
            pass  # the program is nearly as deep as it may go
        except Exception as e:
            if raised(e):
                raise
            self.failed(what, e)
        finally:
            self.took += work() - self.entered
            self.busy = False
        return None

    def programs(self):
        """Seconds of the processor in this thread that were the program's own."""
        return self.entered - self.took

    def failed(self, what, e):
        self.errors += 1
        at = e.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = "%s:%d" % (os.path.basename(at.tb_frame.f_code.co_filename), at.tb_lineno) if at else "?"
        self.note("%s: %s: %s (%s)" % (what, type(e).__name__, str(e)[:200], where))
        if self.errors >= PATIENCE or isinstance(e, (OSError, MemoryError)):
            self.stop("recording stopped after %s at step %d" % (
                "an error" if self.errors == 1 else "%d errors" % self.errors, self.step))

    def now(self):
        """Seconds since 1970, of a clock that began right and is not put back while the program runs."""
        return self.epoch + time.monotonic()

    def note(self, text):
        self.notes[text] = self.notes.get(text, 0) + 1

    def blind(self, device, what):
        """Memory of a device, or with "" of any, is not recorded: a verdict on the rest is no verdict on it."""
        self.note(what)
        self.unseen.append({"device": device, "what": what})

    def stop(self, why):
        """Ends the recording; why is a note, or None."""
        self.stopped = True
        if why:
            self.blind("", why)
        self.report("stopped")
        for s in self.sources:
            try:
                s.stop()
            except Exception as e:
                self.note("%s: %s" % (type(e).__name__, e))

    def start(self):
        from . import _heap, _holders, _jax, _ticks, _torch

        self.heap = _heap.Heap(self)
        self.torch = _torch.Torch(self)
        self.jax = _jax.Jax(self)
        self.sources = [self.torch, self.heap]
        self.holders = _holders.Search(self, self.torch)
        self.ticker = _ticks.Ticker(self)
        if self.settings.get("canary"):
            from . import _canary

            self.canary = _canary.Canary(self)
        if self.settings.get("intervention"):
            from . import _intervention

            self.intervention = _intervention.Intervention(self, self.settings["intervention"])
        if self.settings.get("log_to"):
            from . import _trackers

            self.trackers = _trackers.Trackers(self, self.settings["log_to"])
            self.trackers.start()
        for s in self.sources:
            s.start()
        self.shared.start()
        self.find(_heap.Finder(self))
        self.ticker.start()
        import atexit

        atexit.register(self.finish)
        self.undo.append(lambda: atexit.unregister(self.finish))
        self.undo.append(after_fork(self.forked))
        if self.attached is not None:
            self.attached.start()
        _exit.watch(self)
        self.report("started")

    def replace(self, owner, name, new):
        """Puts a function of ours in the place of one of Python's or a library's, until it is taken back."""
        old = getattr(owner, name)
        setattr(owner, name, new)

        def back():
            if getattr(owner, name, None) is new:  # else another one has taken the place, and calls ours
                setattr(owner, name, old)

        self.undo.append(back)

    def find(self, finder):
        """Has a finder asked for modules."""
        sys.meta_path.insert(0, finder)
        self.undo.append(lambda: finder in sys.meta_path and sys.meta_path.remove(finder))

    def take_back(self):
        """Leaves the program as it was."""
        self.ticker.stop()
        self.code.end()
        self.holders.watch.end()
        for s in self.sources:
            try:
                s.stop()
            except Exception as e:
                self.note("%s: %s" % (type(e).__name__, e))
        while self.undo:
            self.undo.pop()()

    def forked(self):
        """In the child of a fork: it is another process, which records only if it trains, or lives for a while."""
        if self.attached is not None:  # nothing is recorded of a child
            self.stopped, self.attached.done = True, True
            self.take_back()
            self.attached.leave_main()
            return
        self.pid, self.inherited = os.getpid(), self.find_rank()
        self.ceased = _ceased.Ceased(self)
        self.busy, self.number, self.gone = False, 0, False
        self.entered = self.took = 0.0  # the processor's clocks begin at zero
        _role.forked()
        self.ticker.forked()
        self.code.stop()
        self.code = type(self.code)(self)
        self.shared.forked()
        self.losses.fresh()
        self.peaks = None
        if self.intervention is not None:
            self.intervention = self.intervention.forked()
        self.written, self.notes, self.unseen, self.errors = [], {}, [], 0
        # A child that shares its parent's folder would write over its files.
        self.owner = {}
        self.sleep()

    def sleep(self):
        """Nothing is recorded of this process, which others started, until it grows: of many loader's workers none costs anything."""
        self.stopped = self.asleep = True
        self.slept = time.monotonic(), waited()
        for s in self.sources:
            try:
                s.stop()
            except Exception:
                pass  # there is nobody to tell
        self.nap = object()
        if self.ticker.running:
            _thread.start_new_thread(self.await_growth, (self.nap,))

    def await_growth(self, nap):
        named = ""

        def waits():
            nonlocal named
            if self.asleep and self.nap is nap and role() != named:
                named = role()
                if len(os.listdir(self.dir)) < MOST_FILES:
                    self.report("started")  # its role, for who looks from outside
            return self.asleep and self.nap is nap

        try:
            time.sleep(NAMED)
            if grows(waits, self.shared.held) and not helps() and self.admitted(waits):
                self.wake()
                if not self.stopped:
                    self.ticker.loop()
        except Exception as e:
            self.failed("child", e)  # the folder is another user's, as this process now is

    def admitted(self, waits):
        """Waits until another process may be recorded; False when that is waited for no more. A daemon may be the one that records
        its rank."""
        pause = REFUSED
        while waits():
            if self.owns("tick") or self.beside():
                return True
            time.sleep(pause)
            pause = min(2 * pause, REFUSED_MOST)
        return False

    def since_begin(self):
        """Seconds since the command began."""
        return max(0.0, time.time() - self.settings.get("begun", 0))

    def wake(self):
        """A forked child steps an optimizer: it trains. Or it goes on living."""
        from . import _heap, _holders, _jax

        self.asleep = False
        try:
            self.step, self.ticks, self.waited, self.explicit = 0, 0, 0, False
            self.began, self.spent, self.last, self.since, self.ran_before, self.every = None, 0.0, 0.0, 0.0, 0.0, self.fixed or 1
            self.heap, self.jax, self.holders = _heap.Heap(self), _jax.Jax(self), _holders.Search(self, self.torch)
            self.heap.windows.begun = self.slept  # this time may windows take their share of, too
            self.torch.wake()
            self.sources = [self.torch, self.heap]
            self.heap.start()
            self.child, self.stopped, self.batches, self.counted = True, False, _batches.count(), -1
            self.ticker.begin_anew()
        except Exception as e:
            self.failed("fork", e)

    def told(self, step, phase, epoch, loss, event, batch=None, length=None):
        if self.asleep and step is not None:
            self.wake()
        self.guarded("mark", self._told, step, phase, epoch, loss, event, batch, length)

    def _told(self, step, phase, epoch, loss, event, batch, length):
        if event is not None:
            self.happened(str(event))
        if phase is not None:
            phase = str(phase)
            if phase != self.phase:
                self.happened(phase)
                if self.peaks is not None:
                    self.peaks.began()
            self.phase = phase
        if epoch is not None and (epoch := number(self, "epoch", int, epoch)) is not None:
            if epoch != self.epoch_number:
                self.happened("epoch")
            self.epoch_number = epoch
        if step is not None and (step := number(self, "step", int, step)) is not None:
            self.explicit = True
            self.ceased.end()
        if batch is not None or length is not None:
            self.measure(step, batch, length)
        if step is not None:
            self.boundary(step)
        if loss is not None:
            self.losses.told(loss)

    def measure(self, step, batch, length):
        """Takes note of the input of what ran, and of the peak that it reached."""
        if self.peaks is None:
            from . import _peaks

            self.peaks = _peaks.Peaks(self)
        self.peaks.told(self.step if step is None else step, batch, length)

    def happened(self, name):
        """Counts an event that growth may follow."""
        if name in self.events or len(self.events) < MOST_EVENTS:
            self.events[name] = self.events.get(name, 0) + 1

    def stepped(self):
        """An optimizer stepped. Called guarded."""
        self.ceased.end()
        if not self.explicit:
            self.boundary(self.step + 1)

    def boundary(self, step):
        if not self.step and self.ticks:
            self.begin_anew()
        self.step = step
        if self.canary is not None:
            self.canary.plant()  # before a source ends what it records of this step
        if self.intervention is not None:
            self.intervention.act()
        self.code.end()
        self.jax.boundary(step)
        for s in self.sources:
            s.boundary(step)
        if self.fixed:
            due = step % self.fixed == 0 or not self.written
            if (step + 1) % self.fixed == 0:
                self.torch.watch()
        else:
            due = not self.seconds and self.due(step)
        if due:
            self.take(step)
        self.holders.watch.boundary()
        if self.torch.cuda is not None:
            self.torch.cuda.count(step)
        if due:
            self.code.begin()
        self.torch.skip = 0 if self.explicit or self.canary is not None or self.intervention is not None or self.code.on else min(self.torch.unwatched(), self.undue(step), self.heap.ahead())

    def undue(self, step):
        """At the end of how many of the next steps no snapshot is due, nor the step begins that it needs to be watched."""
        if self.seconds:
            return sys.maxsize
        if self.fixed:
            return min(-step % self.fixed or self.fixed, -(step + 1) % self.fixed or self.fixed) - 1
        next = (self.last_step() // self.every + 1) * self.every
        return next - step - 1 if step < next else 0 if self.waited else step // LATE

    def due(self, step):
        """Whether a snapshot is wanted now: each so many steps, or in one of the next, behind a step that was
        watched."""
        if step // self.every == self.last_step() // self.every or self.heap.windows.opened is not None:
            return False  # in a window what has grown is not known
        if not self.overdue() and not self.affordable(share=TRACED_SHARE if self.heap.tracing else SHARE):
            return False
        return self.seen()

    def seen(self):
        """Whether what just ended was watched, for a snapshot; or what follows will be, which one may wait for."""
        if self.torch.settled() or self.waited >= max(WAIT, self.stepping and self.step // WAIT_PART):
            self.waited = 0
            return True
        if not self.stepping:
            self.ticker.soon(BRIEF)
        self.waited += 1
        self.torch.watch()
        return False

    def last_step(self):
        """That of the last snapshot; 0 before the first."""
        last = self.written[-1][0] if self.written else 0
        return last if type(last) is int else 0

    def begin_anew(self):
        """The first step, or JAX, comes after snapshots by the clock, which a long preparation of the
        program's caused: what they cost, and how far apart they were in the end, says nothing of it."""
        self.began, self.spent, self.since, self.ran_before, self.every = None, 0.0, 0.0, 0.0, self.fixed or 1
        self.ticker.begin_anew()
        self.code.spent = 0
        self.torch.begin_anew()
        self.holders.begin_anew()
        if self.torch.module is not None:
            self.heap.begin_anew()

    def prepared(self):
        """What the main thread imports has been imported."""
        self.heap.prepared()
        if self.owner.get("tick") and not self.step:
            self.begin_anew()
            self.drop_ticks()

    def affordable(self, allowance=ALLOWANCE, share=SHARE):
        return self.left(allowance, share) >= 0

    def left(self, allowance, share):
        """Seconds that snapshots may yet take; below zero where they have taken too many."""
        if self.number:
            allowance, share = CHILD_ALLOWANCE, CHILD_SHARE
        dear = DEAR if self.settings.get("experiment") else 1
        return dear * (allowance + share * (self.elapsed() - self.ceased.elapsed)) - self.spent

    def overdue(self):
        """Whether a run would have too few snapshots without one now."""
        return self.again(self.step, self.last_step())

    def late(self):
        """The same of a run by the clock: dear snapshots at its beginning take all, and none would show how it goes on."""
        return self.began is not None and self.again(self.ran(), self.ran_before)

    def spread(self):
        """Seconds to leave before the next snapshot by the clock: what they may yet cost is to last for as long again as the
        program ran, or those of its first second take all, and the rest goes unseen."""
        left = self.left(TICKS_ALLOWANCE, TICKS_SHARE)
        if self.number or self.ticks < FIRST_TICKS or left <= 0:
            return 0.0
        return self.ran() * min(SPARSEST, self.spent / self.ticks / left)

    def again(self, now, before):
        """Whether it is time, in steps or seconds, for a snapshot that has to be, however much they have cost."""
        apart = self.elapsed() - self.since
        return any(now >= times * before and self.last <= share * apart for times, share in AGAIN) or (
            now >= AGAIN[-1][0] * before and self.spent <= AGAIN_ALLOWANCE)

    def ran(self):
        """Seconds since the first mark by the clock, or since steps ceased, whether the program worked or waited."""
        began = self.began  # which another thread may forget
        return time.perf_counter() - max(began[0], self.ceased.began) if began else 0.0

    @property
    def stepping(self):
        """Whether steps count now: there was one, and they have not ceased."""
        return self.step > 0 and self.ceased.after is None

    def elapsed(self):
        """Seconds since the first mark, of which the agent may take its share: by the clock or the
        processor, whichever is less."""
        now = time.perf_counter(), time.process_time()
        if self.began is None:
            self.began = now
        return min(now[0] - self.began[0], now[1] - self.began[1])

    def tick(self, forced=False):
        """Time passed without a step, or somebody asked for a snapshot. Called guarded."""
        if not forced and "torch" in sys.modules and self.torch.module is None:
            return  # it is being imported
        if self.jax.locked():
            return
        if self.ceased.due():
            self.ceased.begin()
        wants = self.wants(forced)
        if not wants and not {"torch", "jax"} & sys.modules.keys():
            return
        self.code.end()  # what it lets go of is not the agent's own work, which had not made it
        before = self.ticks
        with self.own if wants else contextlib.nullcontext():  # to count what is its own takes milliseconds
            self.look(forced)
        if self.ticks > before and not self.stepping and not self.ticker.acts():
            self.code.begin()

    def intervene(self, importing):
        """Without a step, where doctor asks for it. Called guarded."""
        if not importing and not self.step and self.ticks:
            self.intervention.act()

    def wants(self, forced):
        """Whether a snapshot by the clock may be taken."""
        return forced or self.seconds or (self.affordable() if self.stepping else self.affordable(TICKS_ALLOWANCE, TICKS_SHARE) or self.late())

    def look(self, forced):
        self.jax.tick()
        for s in self.sources:
            s.tick()
        if self.child and self.batches is None:  # it grew while it imported what makes batches
            self.batches = _batches.count()
            if self.batches:
                self.begin_anew()
                self.drop()
        if self.batches and not forced:
            if self.batches[0] == self.counted:
                return
            self.counted = self.batches[0]
        if self.wants(forced):
            if not forced and not self.stepping and not self.seen():
                return
            self.ticks += 1
            if forced and self.torch.cuda is not None:
                self.torch.cuda.asked = True
            if self.canary is not None and not self.step:
                self.canary.plant()
            self.take(None if not self.step else self.step)

    # Snapshots.

    def snapshot_now(self):
        """Takes a snapshot that the program asks for; returns the path of the last one."""
        self.tick(True)
        return os.path.join(self.dir, self.written[-1][1]) if self.written else None

    def owns(self, kind):
        """Whether this process is the one that records its rank. Several Python processes may run
        under one command: launchers, loader workers, helpers. The first that comes to a mark
        records; but one that counts steps takes over from those that only have ticks, and one with a rank
        from those without, as launchers are."""
        if kind not in self.owner:
            self.rank = self.find_rank()
            self.owner[kind] = (kind == "step" or self.attached is not None or not self.follows()) and self.claim(self.claim_name(kind))
            if self.owner[kind] and (kind == "step" or self.rank is not None):
                self.drop_ticks()
        if kind == "tick" and self.owner[kind] and self.replaced():
            self.owner[kind], self.gone = False, True
            if not self.owner.get("step"):
                self.drop_ticks()
        return self.owner[kind]

    def follows(self):
        """Whether by the clock this process is recorded beside the one that started it, which has no other rank."""
        reports, given = os.path.join(self.dir, self.settings["report"]), rank_variable()
        return started() or self.rank in (None, self.inherited) and below(reports) or bool(given) and below(reports, given)

    def replaced(self):
        """Whether another process has taken over from this one, which only has ticks."""
        claims = [name for name in os.listdir(self.dir) if name.startswith(".claim_")]
        return self.claim_name("step") in claims or self.rank is None and any("_rank" in name for name in claims)

    def find_rank(self):
        """The rank of this process among those that train together; None where it is alone."""
        dist = sys.modules.get("torch.distributed") if self.torch.module else None
        try:
            if dist is not None and dist.is_available() and dist.is_initialized():
                return dist.get_rank()
        except Exception:
            pass  # half imported
        for name in RANKS:
            value = os.environ.get(name, "")
            if is_rank(value):
                return int(value)
            if value:
                self.note("%s=%s is not a rank (digits only, at most %d); it is ignored" % (name, value, RANK_DIGITS))
        task = self.settings["rank"]  # that memdiag is, or -1
        return task if task >= 0 else None

    def role(self):
        """That of this process, with its rank; of none that others started, what it runs."""
        name = role() or title() or os.path.basename(sys.argv[0])
        rank = self.find_rank()
        return name if rank is None else "%s of rank %d" % (name, rank)

    def claim_name(self, kind):
        return ".claim_%s%s" % (kind, self.suffix())

    def beside(self):
        """Whether this process is recorded beside the one of its rank: a loader's worker, one of a pool."""
        if not self.number and not self.gone and not helps():
            path = _claims.beside(self.dir, self.since_begin())
            while path is not None and not _claims.claim(path):  # another was faster
                path = _claims.beside(self.dir, self.since_begin())
            self.number = int(path.rpartition("child")[2]) if path else 0
        return self.number > 0

    def suffix(self):
        return "" if self.rank is None else "_rank%d" % self.rank

    def claim(self, name):
        return _claims.claim(os.path.join(self.dir, name))

    def drop_ticks(self):
        if self.number:
            self.drop()
        self.written, self.number = [], 0
        for name in os.listdir(self.dir):
            if TICK.fullmatch(name) and ("_rank" not in name or self.rank is not None and name.endswith((self.suffix() + ".json", self.suffix() + ".pickle"))):
                self.remove(name)

    def drop(self):
        """Takes back what this process has written."""
        for _, name in self.written:
            self.remove(name)
        self.written = []

    def take(self, step):
        """Writes a snapshot; step is None where none was counted."""
        if self.ceased.after is not None:
            self.ticks += step is not None and step > self.step  # before an out-of-memory error
            with self.own:
                self.snapshot(None)
            return
        kind = "tick" if step is None else "step"
        first = kind not in self.owner
        if not self.owns(kind) and kind == "tick" and not self.child and not self.gone:
            self.sleep()
            return
        if not self.owner[kind] and not self.beside():
            # Of helpers that only live beside the training nobody need be told.
            self.stop("another process records this rank; this one is not recorded" if kind == "step" and not self.child else None)
            return
        if first and kind == "step" and self.number:
            self.drop()  # those by the clock
        if step is not None and any(w[0] == step for w in self.written):
            return
        with self.own:
            self.snapshot(step)

    def snapshot(self, step):
        start = work()
        number = step if step is not None else "t%d" % self.ticks
        after = "" if self.ceased.after is None else "_after%d" % self.ceased.after
        name = "snapshot_t%s_child%d" % (str(number).lstrip("t"), self.number) if self.number else "snapshot_%s%s%s" % (number, after, self.suffix())
        cuda = self.torch.cuda if self.torch.cuda is not None and self.torch.cuda.recording else None
        if cuda:
            cuda.look()
        elif self.jax.ready:
            spent = self.holders.budget.spent
            dump = self.jax.dump(list(self.holders.of_arrays()))
            self.keep(number, name + ".pb.gz", dump, start + self.holders.budget.spent - spent)
            return
        s = Snapshot()
        collected = self.heap.collections.spent
        for source in self.sources:
            source.fill(s)
        if cuda:
            cuda.fill(s)
        self.shared.fill(s)
        start += self.holders.fill(s) + self.heap.collections.spent - collected  # which have budgets of their own
        _at.fill(s, self.ticker.thread)
        if self.trackers is not None:
            self.trackers.point(s.devices)
        text = self.encode(s, step)
        if cuda:
            dump = cuda.dump(step, self.rank, text)
            self.keep(number, name + ".pickle", dump, start + cuda.spent())
        else:
            self.keep(number, name + ".json", text, start)

    def keep(self, number, name, text, start):
        """Writes a snapshot that was begun at a time, and makes room for it."""
        try:
            self.write(name, text)
        except OSError as e:
            if e.errno not in FULL:
                raise
            if not self.halve():
                if self.stepping or not self.step:
                    raise
                return self.note("the disk was full: there are fewer snapshots of what came after the last step")
            self.write(name, text)
        self.written.append([number, name])
        self.thin()
        if self.child or len(self.written) == ENOUGH:
            self.report("started")  # multiprocessing ends its processes without their atexit; others may be killed
        self.last, self.torch.ahead = work() - start + self.torch.ahead, 0.0
        self.spent += self.last
        self.since, self.ran_before = self.elapsed(), self.ran()
        if self.number:
            _claims.charge(os.path.join(self.dir, _claims.CHILD + str(self.number)), self.took + work() - self.entered)

    def encode(self, s, step):
        b = s.blocks
        if all(n == 1 for n in b["count"]):
            del b["count"]
        if not any(b["category"]):
            del b["category"]
        return json.dumps({
            "memdiag_agent": 1, "producer": s.producer, "step": self.batches[0] if step is None and self.batches else step, "rank": None if self.number else self.rank, "phase": self.phase, "epoch": self.epoch_number,
            **({} if self.peaks is None else {"batch": self.peaks.batch, "length": self.peaks.length}),
            "time_us": int(self.now() * 1e6), "waited_us": int(min(waited(), 1e9) * 1e6), "devices": s.devices, "frames": s.stacks.frames,
            "stacks": s.stacks.stacks, "blocks": b, "categories": list(s.categories.items()), "holders": s.holders, "at": s.at, "anew": s.anew, "events": self.events,
            "notes": s.notes,
            "role": self.role(), "pid": self.pid, **({"awaits_steps": True} if step is None and not self.step and not self.child and self.ticker.trains() else {}),
        }, separators=(",", ":")).encode("utf-8", "surrogateescape")

    def write(self, name, text):
        """A file comes into being under its name when it is whole."""
        if len(text) > COMPRESS_FROM and name.endswith(".json"):
            c = zlib.compressobj(1, zlib.DEFLATED, 31)
            text = c.compress(text) + c.flush()
        path = os.path.join(self.dir, name)
        temporary = os.path.join(self.dir, "." + name + ".tmp")
        try:
            try:
                os.unlink(temporary)  # left over from a process of this number that was killed
            except FileNotFoundError:
                pass
            f = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PERMISSIONS)
            try:
                view = memoryview(text)
                while view:
                    view = view[os.write(f, view):]
            finally:
                os.close(f)
            os.replace(temporary, path)
        except OSError:
            try:
                os.unlink(temporary)
            except OSError:
                pass
            raise

    def thin(self):
        if self.fixed or self.seconds or len(self.written) <= MOST:
            return
        if self.stepping:
            self.every *= 2
        else:
            self.ticker.interval *= 2
        kept, last = [], None
        for i, (number, name) in enumerate(self.written):
            stretch = number // self.every if isinstance(number, int) else i // 2
            if stretch != last or self.spares and i == len(self.written) - 1:
                kept.append([number, name])
                last = stretch
            else:
                self.remove(name)
        self.written = kept

    def halve(self):
        """Takes every second snapshot away on a full disk; False where nobody may, or there would be too few."""
        if self.fixed or self.seconds or len(self.written) < 4:
            return False
        for _, name in self.written[1::2]:
            self.remove(name)
        self.written = self.written[::2]
        if self.stepping:
            self.every *= 2
        else:
            self.ticker.interval *= 2
        self.note("the disk was full: there are fewer snapshots")
        return True

    def remove(self, name):
        try:
            os.unlink(os.path.join(self.dir, name))
        except FileNotFoundError:
            pass  # a process that counts steps has taken over, and has removed it

    # The end.

    def finish(self):
        """At the program's exit. An interrupt has nothing but this left to end."""
        if os.getpid() != self.pid:
            return
        try:
            self._finish()
        except KeyboardInterrupt:
            self.report("finished")

    def _finish(self):
        self.ticker.stop()
        self.ticker.wait()
        if self.seconds and not self.affordable(TICKS_ALLOWANCE, TICKS_SHARE):
            self.note("snapshots took %.1f s, %.0f %% of the run's time, because of --every; a longer interval costs less" % (self.spent, 100 * self.spent / self.elapsed()))
        for s in self.sources:
            try:
                s.finish()
            except Exception as e:
                self.note("%s: %s" % (type(e).__name__, e))
        self.code.end()
        if self.trackers is not None:
            self.trackers.finish()
        if self.intervention is not None and self.intervention.acts and self.intervention.text():
            self.note(self.intervention.text())
        self.report("finished")

    def report(self, state):
        """What memdiag reads at the end about this process."""
        self.losses.flush()
        if self.peaks is not None:
            self.peaks.flush()
        try:
            about = {
                "pid": self.pid, "started": _claims.began("self"), "state": state, "recorded": any(self.owner.values()), "steps": self.step, "rank": self.rank,
                "snapshots": len(self.written), "notes": list(self.notes), "unseen": self.unseen,
                "python": sys.version.split()[0], "role": role(),
                "child": self.asleep or self.number > 0,
            }
            if self.attached is not None and self.attached.grown:
                about["census"] = self.attached.grown
            if state == "finished":
                about["raised"], about["exit"] = _exit.failure(), self.status
                from . import _packages

                self.packages = _packages.versions()
            if self.packages is not None:
                about["packages"] = self.packages
            if self.intervention is not None:
                about["intervention"] = self.intervention.about()
            for s in self.sources:
                about.update(s.about())
            name, code = self.settings["report"] + "%d.json" % self.pid, {}
            if about["recorded"] or about["child"] and not self.asleep:
                code = self.code.about()
            try:
                self.write(name, json.dumps({**about, **code}).encode("utf-8", "surrogateescape"))
            except OSError:
                self.squeeze(name, json.dumps(about).encode("utf-8", "surrogateescape"))
        except Exception:
            pass  # the disk is full, or the folder is gone: there is nowhere to say it


    def squeeze(self, name, text):
        """Says on a full disk that it is full: where the first report stands, which has room, or else in place of
        a snapshot, unless there are but two. That there is a file, if an empty one, says that an agent was here."""
        try:
            f = os.open(os.path.join(self.dir, name), os.O_CREAT | os.O_WRONLY | NOFOLLOW, PERMISSIONS)
            try:
                whole = os.write(f, text) == len(text)
                os.ftruncate(f, len(text))
            finally:
                os.close(f)
        except OSError:
            whole = False
        if not whole and len(self.written) > 2:
            self.remove(self.written.pop()[1])
            self.write(name, text)
