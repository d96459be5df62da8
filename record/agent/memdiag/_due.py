"""When a snapshot is due, and what snapshots may cost."""

import sys
import time

from . import _claims

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


class Due:
    """The part of the agent that knows what its snapshots have cost so far."""

    def __init__(self, settings):
        self.fixed = int(settings.get("every") or 0)  # steps between snapshots; 0 is to choose
        self.seconds = float(settings.get("seconds") or 0)  # … or seconds; 0 is not by time
        self.every = self.fixed or 1
        self.began = None  # the times of the first mark: the clock's and the processor's
        # Seconds that snapshots took, all of them and the last one, and when that one was.
        self.spent, self.last, self.since, self.ran_before = 0.0, 0.0, 0.0, 0.0
        self.waited = 0  # steps, for one to be watched

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

    def elapsed(self):
        """Seconds since the first mark, of which the agent may take its share: by the clock or the
        processor, whichever is less."""
        now = time.perf_counter(), time.process_time()
        if self.began is None:
            self.began = now
        return min(now[0] - self.began[0], now[1] - self.began[1])
