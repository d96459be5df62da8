"""Finds the line of the program at which memory outside Python grows, such as that of a C extension.

In a window, Python calls us for each line of the program's own, and we read how much of malloc is in use. A window begins and ends at the
same line, so that what a loop allocates and frees cancels out.
"""

import _thread
import _tracemalloc
import collections
import sys

from ._budget import Budget
from ._clock import SLOWS, clock, read, work
from ._own import elsewhere, held
from ._passes import Passes, stack
from ._real import time

# What windows may cost: seconds at the start, plus a share of the time. PART: seconds that must be left to open one; twice as many after one
# that has used up the budget.
ALLOWANCE, SHARE, PART = 0.2, 0.03, 0.05
# A window has at least so many rounds, and grows by at least so many bytes: glibc caches tens of kilobytes of freed blocks.
ROUNDS, LEAST = 4, 64 << 10
# Seconds that Python takes to call us, for a line or for a function.
CALL = 5e-7
# LOST: a window whose first line does not run again begins anew once another line has run so many times. LONGEST: it is given up after
# so many seconds. UNENDING: a window with rounds is given up after so many seconds.
LOST, LONGEST, UNENDING = 1000, 5.0, 60.0
# A window that grows so many times as fast as the process shows a buffer that fills, and is emptied later.
FASTER = 4
# The line is known once ENOUGH windows name it, and MOST_OF (a share) of all. After WINDOWS windows without, there is none. Once the time
# has grown AGAIN times, the search begins again: a program may go on to other work.
ENOUGH, MOST_OF, WINDOWS, AGAIN = 3, 0.6, 10, 2
# A line explains the growth if its own is between these shares of it.
EXPLAINS = 0.5, 1.5
# If other threads run for more seconds than this during a line, its growth may be theirs.
LITTLE = 2e-5


class Line:
    __slots__ = "stack", "grown", "times"

    def __init__(self, stack):
        self.stack, self.grown, self.times = stack, 0, 0  # bytes, and how many times it ran


class Native(Passes):
    def __init__(self, agent, malloc, pace):
        Passes.__init__(self, agent)
        self.malloc, self.pace = malloc, pace  # pace returns the growth of the process in bytes a second
        self.budget = Budget(agent, ALLOWANCE, SHARE)
        self.stack = None  # the stack of the line, once it is known
        self.votes = collections.Counter()  # windows by the innermost frame that they name; None if they name none
        self.given_up = 0  # windows that were given up
        self.again = None  # when the next search begins; None during a search
        self.began, self.seen = 0.0, 0  # when the window was opened; and the calls that the budget has counted
        self.part = PART  # seconds that must be left of the budget for the next window
        self.clock, self.left = None, 0.0  # clock of the watched thread, and its time when our work last ended
        self.others, self.agents = 0.0, 0.0  # processor seconds of all other threads, and of the agent's
        self.lines, self.ours = {}, 0  # Line by code and line number; and the Python blocks that these take
        self.anew()

    def open(self):
        """Opens a window, if one is due and the budget allows it."""
        self.overdue()
        if self.again is not None and self.agent.elapsed() >= self.again:
            self.again, self.given_up = None, 0
            self.votes.clear()
        if self.again is None and not self.on and self.budget.affords(self.part) and self.free() and self.malloc():
            self.most = self.events + (1 << 20)
            self.anew()
            self.clock, self.left = clock(), work()
            self.begin()

    def end(self):
        Passes.end(self)
        self.anew()

    def windows(self):
        return self.votes.total() + self.given_up

    def anew(self):
        """Begins the window anew, at the end of the next line."""
        self.anchor, self.rounds, self.rested, self.void = None, 0, None, False
        self.first = self.level = None  # bytes in use when the window began, and when the last line ended
        self.began = time.monotonic()
        self.lines.clear()
        if self.ours:
            self.agent.own.blocks -= self.ours
            self.ours = 0

    def fill(self, snapshot):
        if self.stack:
            snapshot.native.append(snapshot.stacks.add(("native", *self.stack), lambda: self.stack))

    def overdue(self):
        """Gives up a window that lasts too long."""
        if self.on and time.monotonic() - self.began > (UNENDING if self.rounds else LONGEST):
            self.end()
            self.given_up += 1
            self.settle(None)
        else:
            self.tidy()

    def rest(self):
        """The agent's own work begins. In another thread than the watched one it cannot be told apart, so the window is void."""
        self.void = self.void or self.on and self.thread != _thread.get_ident()
        Passes.rest(self)
        self.rested = self.in_use() if self.resting and self.level is not None else None

    def resume(self):
        if self.resting and self.rested is not None:
            gap, self.rested = self.in_use() - self.rested, None
            self.level, self.first = self.level + gap, self.first + gap
            self.alone()
            self.libraries, self.left = 0, work()
        Passes.resume(self)

    def in_use(self):
        return held(self.malloc()) - self.agent.own.bytes

    def passed(self):
        begun = work()
        self.budget.spent += self.slowed(begun) + CALL * (self.events - self.seen)
        if self.void or _tracemalloc.is_tracing():
            self.anew()
        elif self.on and self.at is not None:
            self.grew()
        self.libraries, self.seen, self.left = 0, self.events, work()
        self.budget.spent += self.left - begun

    def slowed(self, now):
        """Seconds by which our watch has slowed down a library's code that ran since the last line ended."""
        return SLOWS * max(0.0, now - self.left) if self.libraries else 0.0

    def overdrawn(self):
        """Whether a line that runs long has used up the budget. Called in the agent's thread."""
        return self.on and not self.budget.affords(self.slowed(read(self.clock)))

    def stop_overdrawn(self, importing):
        """Ends a window that overdrawn has found."""
        if self.on:
            self.budget.spent += self.slowed(read(self.clock))
            self.exhausted()

    def exhausted(self):
        self.end()
        self.part *= 2  # with more left, the next one can end

    def alone(self):
        """Whether no other thread but the agent's has run Python since the last call. Threads of C, such as those of PyTorch's operators, work
        for the line."""
        if _thread._count() <= 1:
            return True
        before, self.others = self.others, elsewhere()
        if self.others - before < LITTLE:
            return True
        agents, self.agents = self.agents, self.agent.ticker.worked()
        return self.others - before - (self.agents - agents) < LITTLE

    def grew(self):
        frame, line = self.at
        key = id(frame.f_code), line
        now, alone = self.in_use(), self.alone()
        if self.anchor is None:
            self.anchor, self.level, self.first = key, now, now
            return
        known = self.lines.get(key)
        if known is None:
            blocks = sys.getallocatedblocks()
            known = self.lines[key] = Line(stack(*self.at))
            blocks = sys.getallocatedblocks() - blocks
            self.ours, self.agent.own.blocks = self.ours + blocks, self.agent.own.blocks + blocks
            ours = self.in_use() - now
            now, self.level, self.first = now + ours, self.level + ours, self.first + ours
        known.grown += now - self.level if alone else 0
        known.times += 1
        self.level = now
        if key == self.anchor:
            self.rounds += 1
            if self.rounds >= ROUNDS and now - self.first >= LEAST:
                self.close(now - self.first)
        elif not self.rounds and known.times >= LOST and not self.agent.stepping:
            self.anew()
        if self.on and not self.budget.affords():
            self.exhausted()

    def close(self, grown):
        filling = grown > FASTER * self.pace() * (time.monotonic() - self.began)
        guilty = None if filling else self.guilty(grown)
        self.votes[guilty and guilty[0]] += 1
        if guilty and self.votes[guilty[0]] >= max(ENOUGH, MOST_OF * self.windows()):
            self.settle(guilty)
        elif self.windows() >= WINDOWS:
            self.settle(None)
        else:
            self.anew()

    def settle(self, stack):
        """Ends the search with a line, or with none after many windows. A line found by the search before stays if any window names it."""
        if stack or self.windows() >= WINDOWS:
            if not stack and self.stack and self.votes[self.stack[0]]:
                stack = self.stack
            self.stack, self.again = stack, AGAIN * self.agent.elapsed()
            self.end()

    def guilty(self, total):
        """The stack of the line that grew most, among those that each grew by about as much as the window. None if there are none, or if several
        together grew by far more. A line that allocates what another one frees grows by more than the window; it counts if the others grew by
        little."""
        least, most = (share * total for share in EXPLAINS)
        rose = sorted((line for line in self.lines.values() if line.grown > 0), key=lambda line: line.grown)
        lines = [line for line in rose if least <= line.grown <= most]
        if not lines and rose and sum(line.grown for line in rose[:-1]) < least:
            lines = rose[-1:]
        return lines[-1].stack if lines and (len(lines) == 1 or sum(line.grown for line in lines) <= most) else None
