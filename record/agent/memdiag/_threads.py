"""Threads that the program starts after importing PyTorch. A dispatch mode belongs to one thread, so each gets its own.

The mode is entered and left where threading registers a thread and removes it, so that no frame of ours is below the program's. Its cost is
bounded. No step shows when such a thread could be left out for a while, so a thread that goes on for long is left out for ever. The census
counts the storages that it allocates from then on, and assigns them to stacks by size.
"""

import threading

from ._budget import Budget
from ._clock import work
from ._leave import leave

# Before this version of PyTorch, threads could fail that called an operator below a mode for the first time, and at the same time.
FIXED = 2, 13
# What watching threads may cost: seconds at the start, plus a share of the time. It is checked each OFTEN operators.
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
        """A mode has seen as many operators as its limit. frame called the last one."""
        if not mode.paused:
            now = work()
            self.budget.spent += self.source.price.of(OFTEN, now - mode.since)
            mode.since, mode.paused = now, not self.budget.affords()
        if mode.paused:
            leave(self.source, mode, frame)
        else:
            mode.limit += OFTEN
