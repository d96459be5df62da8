"""The agent: decides when to look at memory, what that may cost, and where the result goes.

Sources (_torch, _heap, …) know what to look at. Every call from the program into the agent is guarded: an error becomes a note in the
agent's report, and after a few errors the agent stops.
"""

import _thread
import contextlib
import sys

from . import _at, _batches, _ceased, _exit, _files
from ._child import Child
from ._clock import work
from ._due import TICKS_ALLOWANCE, TICKS_SHARE, Due
from ._forks import at_fork
from ._handlers import raised
from ._interrupts import Held
from ._kept import Kept
from ._marks import Steps, number
from ._own import Own
from ._ranks import Ranks
from ._real import os, time
from ._report import Report
from ._snapshot import Snapshot

# The number of different events that are counted, at most.
MOST_EVENTS = 32
# After so many errors the agent stops.
PATIENCE = 3


class Agent(Due, Ranks, Child, Kept, Report):
    def __init__(self, settings):
        from . import _code, _compiled, _losses, _shared

        Due.__init__(self, settings)
        for part in Ranks, Child, Kept, Report:
            part.__init__(self)
        self.code, self.shared, self.losses = _code.Code(self), _shared.Shared(self), _losses.Losses(self)
        self.peaks = None  # from the first mark on that gives the size of an input
        self.dir = settings["dir"]
        self.settings = settings
        self.epoch = time.time() - time.monotonic()  # Unix time at which the monotonic clock, which nobody sets, read 0
        self.step = 0
        self.events = {}  # how often phases, epochs and other events have begun, by name
        self.phase, self.epoch_number = "", None  # the current epoch; None if the program marks none
        self.explicit, self.marked = False, Steps()  # whether the program counts the steps itself; the steps that it marked
        self.ticks = 0
        self.ceased = _ceased.Ceased(self)
        self.stopped = False
        self.working = _thread.allocate_lock()  # held while the agent works for a thread of the program
        self.entered, self.took = 0.0, 0.0  # processor seconds: when the agent's current work began, and how long all before took
        self.switch = _compiled.ignore  # PyTorch's set_eval_frame: with None, torch.compile leaves out what this thread calls
        self.interrupting = False  # the agent's signal handler runs: it may interrupt the program anywhere
        self.sources = []
        self.own = Own(self)
        self.canary = self.intervention = self.trackers = None
        self.errors = 0
        self.pid = os.getpid()
        self.attached = None  # an Attached if the program ran before the agent, else None
        self.undo = []  # functions that undo what the agent has changed in the program

    # Called by the program's events.

    def guarded(self, what, f, *args):
        """Calls f, unless the agent is stopped or already at work in a thread of the program. Errors of the agent become notes; errors from the
        program's signal handlers are raised."""
        working = self.working
        if self.stopped or not working.acquire(False) and not (self.ticker.wait() and working.acquire(False)):
            return None
        prior = self.switch(None)
        try:
            self.entered = work()
            with Held():
                return f(*args)
        except RecursionError:
            pass  # the program is close to its recursion limit
        except Exception as e:
            if raised(e):
                raise
            self.failed(what, e)
        finally:
            self.took += work() - self.entered
            working.release()
            self.switch(prior)
        return None

    def programs(self):
        """Processor seconds that the program itself has used in this thread."""
        return self.entered - self.took

    def failed(self, what, e):
        self.errors += 1
        if isinstance(e, OSError) and e.errno in _files.FULL:
            return self.stop("the disk was full: recording stopped at step %d" % self.step)
        at = e.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = "%s:%d" % (os.path.basename(at.tb_frame.f_code.co_filename), at.tb_lineno) if at else "?"
        self.note("%s: %s: %s (%s)" % (what, type(e).__name__, str(e)[:200], where))
        if self.errors >= PATIENCE or isinstance(e, (OSError, MemoryError)):
            self.stop("recording stopped after %s at step %d" % (
                "an error" if self.errors == 1 else "%d errors" % self.errors, self.step))

    def now(self):
        """Seconds since 1970. The clock is right at the start, and is not set back while the program runs."""
        return self.epoch + time.monotonic()

    def note(self, text):
        self.notes[text] = self.notes.get(text, 0) + 1

    def blind(self, device, what):
        """Records that memory of a device is not recorded, or with "" of any device. A verdict on the rest says nothing about it."""
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
        self.undo.append(at_fork(self.ticker.hidden.forks, self.forked))
        if self.attached is not None:
            self.attached.start()
        _exit.watch(self)
        self.report("started")

    def replace(self, owner, name, new):
        """Replaces a function of Python or a library by one of ours, until take_back."""
        old = getattr(owner, name)
        setattr(owner, name, new)

        def back():
            if getattr(owner, name, None) is new:  # else another function has replaced ours, and calls it
                setattr(owner, name, old)

        self.undo.append(back)

    def find(self, finder):
        """Inserts a finder, which Python asks for each module that is imported."""
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
            step = self.marked.number(self, step)
        if batch is not None or length is not None:
            self.measure(step, batch, length)
        if step is not None:
            self.boundary(step)
        if loss is not None:
            self.losses.told(loss)

    def measure(self, step, batch, length):
        """Records the size of the input of the step, and the peak that the step reached."""
        if self.peaks is None:
            from . import _peaks

            self.peaks = _peaks.Peaks(self)
        self.peaks.told(self.step if step is None else step, batch, length)

    def happened(self, name):
        """Counts an event that growth may be due to."""
        if name in self.events or len(self.events) < MOST_EVENTS:
            self.events[name] = self.events.get(name, 0) + 1

    def stepped(self):
        """An optimizer stepped. Called through guarded."""
        self.ceased.end()
        if not self.explicit:
            self.boundary(self.step + 1)

    def boundary(self, step):
        if not self.step and self.ticks:
            self.begin_anew()
        self.step = step
        if self.canary is not None:
            self.canary.plant()  # before the sources end their records of this step
        if self.intervention is not None:
            self.intervention.act()
        self.code.end()
        self.holders.watch.end()  # while it is on, Python holds the variables that a traced function had before
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

    def begin_anew(self):
        """Resets budgets and intervals at the first step, or first use of JAX, if there were snapshots by the clock before it. Those were
        due to a long preparation of the program: their cost and final interval say nothing about the steps."""
        self.began, self.spent, self.since, self.ran_before, self.every = None, 0.0, 0.0, 0.0, self.fixed or 1
        self.ticker.begin_anew()
        self.code.spent = 0
        self.torch.begin_anew()
        self.holders.begin_anew()
        if self.torch.module is not None:
            self.heap.begin_anew()
        else:
            self.heap.forget_native()

    def prepared(self):
        """The imports of the main thread have ended."""
        self.heap.prepared()
        if self.owner.get("tick") and not self.step:
            self.begin_anew()
            self.drop_ticks()

    @property

    def stepping(self):
        """Whether steps count now: there was a step, and steps have not ceased."""
        return self.step > 0 and self.ceased.after is None

    def tick(self, forced=False):
        """Time passed without a step, or somebody asked for a snapshot. Called through guarded."""
        if forced:
            self.marked.asked = self.step
        if not forced and "torch" in sys.modules and self.torch.module is None:
            return  # PyTorch is being imported
        if self.jax.locked():
            return
        if self.ceased.due():
            self.ceased.begin()
        wants = self.wants(forced)
        if not wants and not {"torch", "jax"} & sys.modules.keys():
            return
        self.code.end()  # before self.own begins to count: what this frees was allocated while it did not
        before, self.forced = self.ticks, forced
        try:
            with self.own if wants else contextlib.nullcontext():  # counting the agent's own memory takes milliseconds
                self.look(forced)
        finally:
            self.forced = False
        if forced:
            self.torch.watch_rest()
        if not self.stepping and not self.ticker.acts():
            self.heap.look_outside()
            if self.ticks > before:
                self.code.begin()

    def intervene(self, importing):
        """Acts without a step, where doctor asks for it. Called through guarded."""
        if not importing and not self.step and self.ticks:
            self.intervention.act()

    def wants(self, forced):
        """Whether the clock may trigger a snapshot now."""
        return forced or self.seconds or (self.affordable() if self.stepping else self.affordable(TICKS_ALLOWANCE, TICKS_SHARE) or self.late())

    def look(self, forced):
        self.jax.tick()
        for s in self.sources:
            s.tick()
        if self.child and self.batches is None:  # while it imported what makes batches, it grew
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
        """Takes a snapshot for the program; returns the path of the newest one."""
        self.repeated = None
        self.tick(True)
        name = self.repeated or self.written and self.written[-1][1]
        return os.path.join(self.dir, name) if name else None

    def take(self, step):
        """Writes a snapshot; step is None if no step was counted."""
        if self.ceased.after is not None:
            self.ticks += step is not None and step > self.step  # a snapshot before an out-of-memory error
            with self.own:
                self.snapshot(None)
            return
        kind = "tick" if step is None else "step"
        first = kind not in self.owner
        if not self.owns(kind) and kind == "tick" and not self.child:
            self.sleep()
            return
        if not self.owner[kind] and not self.beside():
            # Helper processes beside the training need no note.
            self.stop("another process records this rank; this one is not recorded" if kind == "step" and not self.child else None)
            return
        if first and kind == "step" and self.number:
            self.drop()  # snapshots by the clock
        again = step is not None and any(w[0] == step for w in self.written)
        if again and (not self.forced or self.number):
            return
        with self.own:
            self.snapshot(step, again)

    def snapshot(self, step, again=False):
        """again: whether the step has a snapshot, so that this one gets a file that is no part of the run's series."""
        start = work()
        number = step if step is not None else "t%d" % self.ticks
        after = "" if self.ceased.after is None else "_after%d" % self.ceased.after
        name = "snapshot_t%s_child%d" % (str(number).lstrip("t"), self.number) if self.number else "snapshot_%s%s%s" % (number, after, self.suffix())
        if again:
            number, name = None, "again_%d_%d%s" % (step, self.ticks, self.suffix())
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
        start += self.holders.fill(s) + self.heap.collections.spent - collected  # the search and collections have their own budgets
        _at.fill(s, self.ticker.thread)
        if self.trackers is not None:
            self.trackers.point(s.devices)
        text = self.encode(s, step)
        if cuda:
            dump, lighter = cuda.dump(step, self.rank, text)
            self.keep(number, name + ".pickle", dump, start + cuda.spent(), lighter)
        else:
            self.keep(number, name + ".json", text, start)
