"""Threads that the program starts once PyTorch is imported: a dispatch mode is one thread's, so each gets its own.

It is entered and left where threading makes a thread known and forgets it, so that no frame of
ours stands below the program's. What it may cost is bounded, and no step tells where such a
thread could be left out for a while: one that goes on for long is left for good. What is made there from
then on is counted, and told by its size from what was seen.
"""

import threading

from ._budget import Budget
from ._clock import work
from ._leave import leave

# What watching threads may cost: so many seconds and this share of the time, looked at each so many operators.
ALLOWANCE, SHARE, OFTEN = 0.06, 0.015, 128


class Threads:
    def __init__(self, source):
        self.source = source
        self.budget = Budget(source.agent, ALLOWANCE, SHARE)

    def start(self):
        thread, dummy = threading.Thread, threading._DummyThread
        begins, ends = thread._set_ident, thread._delete

        def _set_ident(self_):
            begins(self_)
            if not isinstance(self_, dummy):
                self.source.agent.guarded("thread", self.enter)

        def _delete(self_):
            ends(self_)
            try:
                self.source.off()
            except Exception as e:
                self.source.agent.failed("thread", e)

        self.source.agent.replace(thread, "_set_ident", _set_ident)
        self.source.agent.replace(thread, "_delete", _delete)

    def enter(self):
        if self.source.mode is not None and self.budget.affords():
            mode = type(self.source.mode)()
            mode.limit, mode.watcher, mode.since, mode.thread = OFTEN, self, work(), threading.get_ident()
            mode.__enter__()

    def exhausted(self, mode, frame):
        """A mode has seen as many operators as it was to, the last one in a frame of its thread."""
        if not mode.paused:
            now = work()
            self.budget.spent += self.source.price.of(OFTEN, now - mode.since)
            mode.since, mode.paused = now, not self.budget.affords()
        if mode.paused:
            leave(self.source, mode, frame)
        else:
            mode.limit += OFTEN
