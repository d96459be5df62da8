"""Decides when a snapshot is due, and limits what snapshots cost."""

import sys

from . import _claims
from ._real import time

# What snapshots may cost: seconds at the start, plus a share of the time since the first step.
ALLOWANCE, SHARE = 0.12, 0.015
# The same share while Python's heap is traced all the time, on request.
TRACED_SHARE = 0.06
# Whatever snapshots have cost, there is another one once the steps, or the time, have grown by one of these factors, if the last one
# took no more than the given share of the time since. At the largest factor it is also enough if all took no more than AGAIN_ALLOWANCE
# seconds. So the last snapshot is near the end of a run of any length.
AGAIN, AGAIN_ALLOWANCE = ((1.1, 0.03), (1.3, 0.1)), 0.4
# The same as ALLOWANCE and SHARE for snapshots by the clock: a program must give enough of them to be judged, however short it is and
# however busy the machine.
TICKS_ALLOWANCE, TICKS_SHARE = 0.25, 0.04
# After FIRST_TICKS of them the rest are spread over the run. SPARSEST: they are at most this share of the run's time apart.
FIRST_TICKS, SPARSEST = 8, 0.125
# WAIT: how many steps a snapshot waits at most for a step that was watched to its end, or for an evaluation. WAIT_PART: in a long run
# it waits for this part of the steps: one in so many.
WAIT, WAIT_PART = 8, 32
# Without steps it waits so many seconds, which are watched.
BRIEF = 0.02
# A snapshot that is due but costs too much may come late by this part of the steps: one in so many.
LATE = 64
# The same as ALLOWANCE and SHARE for a process that another one started, once it grows.
CHILD_ALLOWANCE, CHILD_SHARE = _claims.EACH, 0.03
# Snapshots may cost so many times as much in an experiment: there all compared runs are recorded that way.
DEAR = 4


class Due:
    """The part of the agent that knows what its snapshots have cost so far."""

    def __init__(self, settings):
        self.fixed = int(settings.get("every") or 0)  # steps between snapshots; 0: the agent chooses
        self.seconds = float(settings.get("seconds") or 0)  # seconds between snapshots; 0: none by time
        self.every = self.fixed or 1
        self.began = None  # the times of the first mark: on the clock, and of the processor
        # Seconds of all snapshots and of the last one; when the last one was, by elapsed() and by ran().
        self.spent, self.last, self.since, self.ran_before = 0.0, 0.0, 0.0, 0.0
        self.waited = 0  # steps for which a due snapshot has waited

    def undue(self, step):
        """How many of the next steps need nothing: no snapshot is due at their end, and the step that one needs watched does not begin there."""
        if self.seconds:
            return sys.maxsize
        if self.fixed:
            return min(-step % self.fixed or self.fixed, -(step + 1) % self.fixed or self.fixed) - 1
        next = (self.last_step() // self.every + 1) * self.every
        return next - step - 1 if step < next else 0 if self.waited else step // LATE

    def due(self, step):
        """Whether a snapshot is wanted now: after every so many steps, or after one of the next steps if that was watched."""
        if step // self.every == self.last_step() // self.every or self.heap.windows.opened is not None:
            return False  # while a window is open, the growth is not known
        if not self.overdue() and not self.affordable(share=TRACED_SHARE if self.heap.tracing else SHARE):
            return False
        return self.seen()

    def seen(self):
        """Whether what just ended was watched, or the snapshot has waited long enough. If neither, the next step is watched."""
        if self.torch.settled() or self.waited >= max(WAIT, self.stepping and self.step // WAIT_PART):
            self.waited = 0
            return True
        if not self.stepping:
            self.ticker.soon(BRIEF)
        self.waited += 1
        self.torch.watch()
        return False

    def last_step(self):
        """The step of the last snapshot; 0 before the first."""
        last = self.written[-1][0] if self.written else 0
        return last if type(last) is int else 0

    def affordable(self, allowance=ALLOWANCE, share=SHARE):
        return self.left(allowance, share) >= 0

    def left(self, allowance, share):
        """Seconds that snapshots may still take; negative if they have taken too many."""
        if self.number:
            allowance, share = CHILD_ALLOWANCE, CHILD_SHARE
        dear = DEAR if self.settings.get("experiment") else 1
        return dear * (allowance + share * (self.elapsed() - self.ceased.elapsed)) - self.spent

    def overdue(self):
        """Whether a run would have too few snapshots without one now."""
        return self.again(self.step, self.last_step())

    def late(self):
        """The same for a run by the clock. Its first snapshots may use up the budget, and then none would show how the run goes on."""
        return self.began is not None and self.again(self.ran(), self.ran_before)

    def spread(self):
        """Seconds until the next snapshot by the clock. The rest of the budget must last for as long again as the program has run. Otherwise
        the snapshots of the first second use it up, and the rest of the run goes unseen."""
        left = self.left(TICKS_ALLOWANCE, TICKS_SHARE)
        if self.number or self.ticks < FIRST_TICKS or left <= 0:
            return 0.0
        return self.ran() * min(SPARSEST, self.spent / self.ticks / left)

    def again(self, now, before):
        """Whether a snapshot must be taken whatever they have cost. now and before are in steps or seconds."""
        apart = self.elapsed() - self.since
        return any(now >= times * before and self.last <= share * apart for times, share in AGAIN) or (
            now >= AGAIN[-1][0] * before and self.spent <= AGAIN_ALLOWANCE)

    def ran(self):
        """Seconds on the clock since the first mark, or since steps ceased, waits included."""
        began = self.began  # another thread may reset it
        return time.perf_counter() - max(began[0], self.ceased.began) if began else 0.0

    def elapsed(self):
        """Seconds since the first mark: on the clock or of the processor, whichever is less. The agent may take its share of them."""
        now = time.perf_counter(), time.process_time()
        if self.began is None:
            self.began = now
        return min(now[0] - self.began[0], now[1] - self.began[1])
