"""How soon our thread gets Python's lock.

A waiting thread asks for the lock once nobody has released it for sys.getswitchinterval(), 5 ms. asyncio releases it briefly in each
round of its loop, and takes it again before our thread is awake. So our thread waited for seconds. A shorter interval passes within
a round.
"""

import _thread
import sys

# Our interval in seconds; timers of Linux add 0.05 ms.
SHORT = 1e-4
# A short interval costs a program with several threads more switches. There, our thread must first
# wake too late by LATE seconds, TIMES times in a row.
TIMES, LATE = 3, 0.2


class Turn:
    def __init__(self):
        self.programs = self.ours = None  # the intervals: the program's, and ours, which replaces it
        self.starved = 0

    def woke(self, late, stepping):
        """Our thread got its turn, so many seconds late. With steps, snapshots are taken at their ends, and our thread needs no short
        interval."""
        if self.starved < TIMES:
            self.starved = self.starved + 1 if late >= LATE else 0
        if not stepping and (_thread._count() <= 1 or self.starved == TIMES):
            if self.programs is None and sys.getswitchinterval() > SHORT:
                self.programs = sys.getswitchinterval()
                sys.setswitchinterval(SHORT)
                self.ours = sys.getswitchinterval()
        else:
            self.end()

    def end(self):
        """Gives the program its interval back, unless the program has set another one."""
        if self.programs is not None:
            if sys.getswitchinterval() == self.ours:
                sys.setswitchinterval(self.programs)
            self.programs = None
