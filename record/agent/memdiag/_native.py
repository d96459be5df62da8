"""The line of the program's at which memory outside Python grows, as that of a C extension.

For a short while Python calls us for each line of the program's own, and malloc is asked for what is in use. A window begins and
ends at the same line, so that what a loop allocates and releases again cancels out.
"""

import _thread
import _tracemalloc
import collections
import sys
import time

from ._budget import Budget
from ._clock import SLOWS, clock, read, work
from ._own import elsewhere, held
from ._passes import Passes, stack

# What windows may cost: so many seconds, and this share of the time. None is opened that could take less than a part of that.
ALLOWANCE, SHARE, PART = 0.2, 0.03, 0.05
# A window has at least so many rounds, and grows by so many bytes: glibc caches some tens of kilobytes of what is freed.
ROUNDS, LEAST = 4, 64 << 10
# Seconds that Python takes to call us, for a line or for a function.
CALL = 5e-7
# One whose first line does not run again begins anew once another line has run so many times, and is given up after so many seconds;
# one that has begun its rounds, after so many.
LOST, LONGEST, UNENDING = 1000, 5.0, 60.0
# A window that grows so many times as fast as the process does shows a buffer that fills, and is emptied later.
FASTER = 4
# The line is known once so many windows name it, and this share of them all. After so many windows there is none. Once the time has
# grown so many times, it is looked for again: a program may go on to other work.
ENOUGH, MOST_OF, WINDOWS, AGAIN = 3, 0.6, 10, 2
# A line that grew by between these shares of what all of them did explains it.
EXPLAINS = 0.5, 1.5
# Seconds that other threads may run while a line does, whose memory it may be that grows then.
LITTLE = 2e-5


class Line:
    __slots__ = "stack", "grown", "times"

    def __init__(self, stack):
        self.stack, self.grown, self.times = stack, 0, 0  # bytes, and how often it ended


class Native(Passes):
    def __init__(self, agent, malloc, pace):
        Passes.__init__(self, agent)
        self.malloc, self.pace = malloc, pace  # pace returns by how many bytes a second the process grows
        self.budget = Budget(agent, ALLOWANCE, SHARE)
        self.stack = None  # of the line, once it is known
        self.votes = collections.Counter()  # windows by the innermost frame that they name; None for none
        self.given_up = 0  # windows without an end
        self.again = None  # when the line is looked for again; None while it is
        self.began, self.seen = 0.0, 0  # when the window was opened, and the calls that the budget knows
        self.part = PART  # seconds of the budget that the next window needs
        self.clock, self.left = None, 0.0  # of the thread that is watched, and its time when we last went
        self.others, self.agents = 0.0, 0.0  # for how long all other threads had run, and that of the agent
        self.lines, self.ours = {}, 0  # by code and line; and the blocks of Python's that these take
        self.anew()

    def open(self):
        """Opens a window, if it is of use."""
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
        """A window begins with the end of the next line."""
        self.anchor, self.rounds, self.rested, self.void = None, 0, None, False
        self.first = self.level = None  # bytes in use at its beginning, and when the last line ended
        self.began = time.monotonic()
        self.lines.clear()
        if self.ours:
            self.agent.own.blocks -= self.ours
            self.ours = 0

    def fill(self, snapshot):
        if self.stack:
            snapshot.native.append(snapshot.stacks.add(("native", *self.stack), lambda: self.stack))

    def overdue(self):
        """Gives up a window that does not come to its end."""
        if self.on and time.monotonic() - self.began > (UNENDING if self.rounds else LONGEST):
            self.end()
            self.given_up += 1
            self.settle(None)
        else:
            self.tidy()

    def rest(self):
        """The agent's own work begins. What another thread does at it is not known apart."""
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
        """Seconds by which a library's code, which has run since the last line ended, took longer."""
        return SLOWS * max(0.0, now - self.left) if self.libraries else 0.0

    def overdrawn(self):
        """Whether a line that goes on for long has used up the budget. Called in the agent's thread."""
        return self.on and not self.budget.affords(self.slowed(read(self.clock)))

    def stop_overdrawn(self, importing):
        """Called where it is overdrawn."""
        if self.on:
            self.budget.spent += self.slowed(read(self.clock))
            self.exhausted()

    def exhausted(self):
        self.end()
        self.part *= 2  # a longer one comes to its end

    def alone(self):
        """Whether no other thread of Python's has run since the last call, but the agent's. Threads of C, as of PyTorch's operators, work
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
        """Ends the search with a line, or after many windows with none. The line of the search before stays if any window names it."""
        if stack or self.windows() >= WINDOWS:
            if not stack and self.stack and self.votes[self.stack[0]]:
                stack = self.stack
            self.stack, self.again = stack, AGAIN * self.agent.elapsed()
            self.end()

    def guilty(self, total):
        """The stack of the line that grew most, of those that together grew by about as much as all; None if there is none. A line that
        allocates what another one releases has grown by more, or nearly nothing else has grown."""
        least, most = (share * total for share in EXPLAINS)
        rose = sorted((line for line in self.lines.values() if line.grown > 0), key=lambda line: line.grown)
        lines = [line for line in rose if least <= line.grown <= most]
        if not lines and rose and sum(line.grown for line in rose[:-1]) < least:
            lines = rose[-1:]
        return lines[-1].stack if lines and (len(lines) == 1 or sum(line.grown for line in lines) <= most) else None
