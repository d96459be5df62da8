"""Follows a process that the program forked: it sleeps until it trains or grows."""

import _thread
import itertools

from . import _batches, _ceased, _role
from ._growth import grows
from ._kept import Kept
from ._own import waited
from ._real import os, time
from ._role import helps, role

# Seconds until a growing process that may not be recorded now asks again: at first, and at most.
REFUSED, REFUSED_MOST = 2.0, 60.0
# NAMED: seconds after which a forked process has the name that is given to it. MOST_FILES: it reports the name if the folder has fewer files.
NAMED, MOST_FILES = 0.3, 1000


class Child:
    """The part of the agent that follows the program's forks."""

    def __init__(self):
        self.asleep, self.nap = False, None  # whether it sleeps until it trains or grows; and a mark of this sleep
        self.child = False  # whether this is a forked process that is recorded
        self.batches = None  # in a loader's worker: how many batches it has made since it grew, in a list
        self.counted = -1  # their number at the last look

    def forked(self):
        """Called in the child of a fork. It is another process, which is recorded only if it trains or grows."""
        if self.attached is not None:  # a program that we attached to: its children are not recorded
            self.stopped, self.attached.done = True, True
            self.take_back()
            self.attached.leave_main()
            return
        self.pid, self.inherited = os.getpid(), self.find_rank()
        self.ceased = _ceased.Ceased(self)
        self.working, self.number, self.gone = _thread.allocate_lock(), 0, False
        self.entered = self.took = 0.0  # the processor's clocks of a new process begin at zero
        _role.forked()
        self.ticker.forked()
        self.code.stop()
        self.code = type(self.code)(self)
        self.shared.forked()
        self.losses.fresh()
        self.__dict__.pop("watches", None)  # their calls are the parent's
        self.peaks = None
        if self.intervention is not None:
            self.intervention = self.intervention.forked()
        Kept.__init__(self)
        self.notes, self.unseen, self.errors = {}, [], 0
        # A child with its parent's names would overwrite the parent's files.
        self.owner = {}
        self.sleep()

    def sleep(self):
        """Nothing is recorded of this process until it grows, since another one started it: so many loader's workers cost nothing."""
        self.stopped = self.asleep = True
        self.slept = time.monotonic(), waited()
        for s in self.sources:
            try:
                s.stop()
            except Exception:
                pass  # there is no report to note it in
        self.nap = object()
        if self.ticker.running:
            _thread.start_new_thread(self.await_growth, (self.nap,))

    def await_growth(self, nap):
        named = ""

        def waits():
            nonlocal named
            if self.asleep and self.nap is nap and role() != named:
                named = role()
                with os.scandir(self.dir) as names:
                    few = sum(1 for _ in itertools.islice(names, MOST_FILES)) < MOST_FILES
                if few:
                    self.report("started")  # its role, for readers of the run's folder
            return self.asleep and self.nap is nap

        try:
            time.sleep(NAMED)
            if grows(waits, self.shared.held) and not helps() and self.admitted(waits):
                self.wake()
                if not self.stopped:
                    self.ticker.loop()
        except Exception as e:
            self.failed("child", e)  # the process may have changed its user, and the folder is not its own

    def admitted(self, waits):
        """Waits until one more process may be recorded; False if waits() ends that. A daemon may also be the one that records its rank."""
        pause = REFUSED
        while waits():
            if self.owns("tick") or self.beside():
                return True
            time.sleep(pause)
            pause = min(2 * pause, REFUSED_MOST)
        return False

    def wake(self):
        """Begins to record: the process steps an optimizer, or grows."""
        from . import _heap, _holders, _jax, _marks

        self.asleep = False
        try:
            self.step, self.ticks, self.waited, self.explicit, self.marked = 0, 0, 0, False, _marks.Steps()
            self.began, self.spent, self.last, self.since, self.ran_before, self.every = None, 0.0, 0.0, 0.0, 0.0, self.fixed or 1
            self.heap, self.jax, self.holders = _heap.Heap(self), _jax.Jax(self), _holders.Search(self, self.torch)
            self.heap.windows.begun = self.slept  # windows may take their share of the time asleep, too
            self.torch.wake()
            self.sources = [self.torch, self.heap]
            self.heap.start()
            self.child, self.stopped, self.batches, self.counted = True, False, _batches.count(), -1
            self.ticker.begin_anew()
        except Exception as e:
            self.failed("fork", e)
