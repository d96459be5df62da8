"""The line of the program's at which memory outside Python grows, as that of a C extension.

For a short while Python calls us for each line of the program's own, and malloc is asked for what is in use. A window begins and
ends at the same line, so that what a loop allocates and releases again cancels out.
"""

import collections
import time

from ._budget import Budget
from ._clock import work
from ._own import held
from ._passes import Passes, stack

# What windows may cost: so many seconds, and this share of the time. None is opened that could take less than a part of that.
ALLOWANCE, SHARE, PART = 0.2, 0.03, 0.05
# A window has at least so many rounds, and grows by so many bytes: glibc caches some tens of kilobytes of what is freed.
ROUNDS, LEAST = 4, 64 << 10
# Seconds that Python takes to call us, for a line or for a function.
CALL = 5e-7
# One whose first line does not run again begins anew once another line has run so many times, and is given up after so many seconds.
LOST, LONGEST = 1000, 5.0
# The line is known once so many windows name it, and this share of them all. After so many windows there is none.
ENOUGH, MOST_OF, WINDOWS = 3, 0.6, 10
# A line that grew by between these shares of what all of them did explains it.
EXPLAINS = 0.5, 1.5


class Line:
    __slots__ = "stack", "grown", "times"

    def __init__(self, stack):
        self.stack, self.grown, self.times = stack, 0, 0  # bytes, and how often it ended


class Native(Passes):
    def __init__(self, agent, malloc):
        Passes.__init__(self, agent)
        self.malloc = malloc
        self.budget = Budget(agent, ALLOWANCE, SHARE)
        self.stack = None  # of the line, once it is known
        self.votes = collections.Counter()  # windows by the innermost frame that they name; None for none
        self.given_up = 0  # windows without an end
        self.began, self.seen = 0.0, 0  # when the window was opened, and the calls that the budget knows
        self.rested = None  # bytes in use when the agent's own work began
        self.anew()

    def open(self):
        """Opens a window, if it is of use."""
        if self.stack is None and self.windows() < WINDOWS and self.budget.affords(PART) and self.malloc() and self.free():
            self.end()
            self.most = self.events + (1 << 20)
            self.began = time.monotonic()
            self.anew()
            self.begin()

    def end(self):
        Passes.end(self)
        self.level = self.rested = None

    def windows(self):
        return self.votes.total() + self.given_up

    def anew(self):
        """A window begins with the end of the next line."""
        self.anchor, self.rounds, self.rested = None, 0, None
        self.first = self.level = None  # bytes in use at its beginning, and when the last line ended
        self.lines = {}  # by code and line

    def fill(self, snapshot):
        if self.stack:
            snapshot.native.append(snapshot.stacks.add(("native", *self.stack), lambda: self.stack))

    def overdue(self):
        """Gives up a window that does not come to its end."""
        if self.on and time.monotonic() - self.began > LONGEST:
            self.end()
            self.given_up += 1

    def rest(self):
        Passes.rest(self)
        self.rested = self.in_use() if self.level is not None else None

    def resume(self):
        if self.rested is not None:
            gap, self.rested = self.in_use() - self.rested, None
            self.level, self.first = self.level + gap, self.first + gap  # ours
        Passes.resume(self)

    def in_use(self):
        return held(self.malloc()) - self.agent.own.bytes

    def passed(self):
        begun = work()
        if self.on and self.at is not None:
            self.grew()
        self.budget.spent += work() - begun + CALL * (self.events - self.seen)
        self.seen = self.events

    def grew(self):
        frame, line = self.at
        key = id(frame.f_code), line
        now = self.in_use()
        if self.anchor is None:
            self.anchor, self.level, self.first = key, now, now
            return
        known = self.lines.get(key)
        if known is None:
            known = self.lines[key] = Line(stack(*self.at))
            ours = self.in_use() - now
            now, self.level, self.first = now + ours, self.level + ours, self.first + ours
        known.grown += now - self.level
        known.times += 1
        self.level = now
        if key == self.anchor:
            self.rounds += 1
            if self.rounds >= ROUNDS and self.level - self.first >= LEAST:
                self.close()
        elif not self.rounds and known.times >= LOST:
            self.anew()
        if not self.budget.affords():
            self.end()

    def close(self):
        guilty = self.guilty(self.level - self.first)
        named = guilty and guilty[0]
        self.votes[named] += 1
        if named and self.votes[named] >= max(ENOUGH, MOST_OF * self.windows()):
            self.stack = guilty
        if self.stack or self.windows() >= WINDOWS:
            self.end()
        else:
            self.began = time.monotonic()
            self.anew()

    def guilty(self, total):
        """The stack of the line that grew most, of those that together grew by about as much as all; None if there is none. A line that
        allocates what another one releases has grown by more, or is the only one that has grown."""
        least, most = (share * total for share in EXPLAINS)
        lines = sorted((line for line in self.lines.values() if line.grown >= least), key=lambda line: line.grown)
        if len(lines) > 1:
            lines = [line for line in lines if line.grown <= most]
        return lines[-1].stack if len(lines) == 1 or lines and sum(line.grown for line in lines) <= most else None
