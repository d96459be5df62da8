"""A process that the program forked: it sleeps until it trains or grows."""

import _thread
import itertools
import os
import time

from . import _batches, _ceased, _role
from ._growth import grows
from ._own import waited
from ._role import helps, role

# Seconds after which one that grows and may not be recorded for now asks again, at first and at most.
REFUSED, REFUSED_MOST = 2.0, 60.0
# Seconds after which a forked process has the name that is given to it, and how many files there are of such at most.
NAMED, MOST_FILES = 0.3, 1000


class Child:
    """The part of the agent that follows the program's forks."""

    def __init__(self):
        self.asleep, self.nap = False, None  # until it trains or grows
        self.child = False  # forked, and trains
        self.batches = None  # of a loader's worker, how many it has made since it grows, in a list
        self.counted = -1  # … at the last look

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
                with os.scandir(self.dir) as names:
                    few = sum(1 for _ in itertools.islice(names, MOST_FILES)) < MOST_FILES
                if few:
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

    def wake(self):
        """A forked child steps an optimizer: it trains. Or it goes on living."""
        from . import _heap, _holders, _jax, _marks

        self.asleep = False
        try:
            self.step, self.ticks, self.waited, self.explicit, self.marked = 0, 0, 0, False, _marks.Steps()
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
