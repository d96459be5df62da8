"""Makes Python call us, for a while, for each function that is called and for each line of the program's own code."""

import _tracemalloc
import sys
from _thread import get_ident

from ._compiled import compiles
from ._handlers import raised
from ._length import forget
from ._real import os
from ._roots import is_programs_file
from ._tracing import Suspended, runs, trace

# Frames of a stack, at most.
DEPTH = 32
OURS = os.path.dirname(__spec__.origin)


class Passes:
    """Calls passed when a line of the program has ended, with all that it called. Errors of passed would reach the program."""

    def __init__(self, agent):
        self.agent = agent
        self.on = self.resting = False
        self.thread = None  # the thread whose lines are watched
        self.untidy = False  # whether Python may still hold the locals of frames that were traced
        self.events = self.most = 0  # calls and lines so far, and their limit
        self.libraries = 0  # calls of functions that are not the program's since its last line ended
        self.at = None  # the program's innermost frame, and its line
        self.suspended = Suspended()
        self.own = {}  # by id of a code object: whether it is the program's, and the object
        # Python borrows a trace function while it prepares a call of it. A collection may run then, with a signal's handler in which the
        # agent ends tracing: a bound method that only Python had would be gone, and other memory would be called in its place.
        self.on_call, self.on_line = self.call, self.line

    def passed(self):
        raise NotImplementedError

    def free(self):
        """Whether nothing else makes Python call it or slows it down."""
        return not _tracemalloc.is_tracing() and sys.gettrace() is None and not compiles()  # its frames are not ordinary ones

    def begin(self):
        self.thread, self.resting, self.at, self.suspended = get_ident(), False, None, Suspended()
        frame = sys._getframe()
        while frame is not None:
            if self.programs(frame):
                self.at = self.at or (frame, frame.f_lineno)
                frame.f_trace = self.on_line
            elif self.at is None and not frame.f_code.co_filename.startswith(OURS):
                self.libraries = 1  # one is running
            frame = frame.f_back
        self.on = self.untidy = True
        trace(self.on_call)

    def end(self):
        """Ends the watch. Another thread only sets a flag: a line may be running at that moment, and its end does the rest."""
        self.on = False
        if self.thread != get_ident():
            return
        if sys.gettrace() == self.call:
            trace(None)
        for frame in self.suspended.all():
            if frame.f_trace == self.line:
                frame.f_trace = None
        self.at = None
        self.own.clear()
        self.tidy()

    def tidy(self):
        """Makes Python release the locals of frames that were traced. While a line is still watched, this waits for the next call."""
        if self.on or not self.untidy or self.thread != get_ident() or sys.gettrace() is not None or runs(sys._getframe()):
            return
        self.untidy = False
        for frame in self.suspended.all():
            if self.programs(frame):
                forget(frame)
        self.suspended = Suspended()
        self.own.clear()

    def rest(self):
        """Hides the agent's own calls, until resume."""
        if self.on and self.thread == get_ident() and sys.gettrace() == self.call:
            self.resting = True
            trace(None)

    def resume(self):
        if self.resting and self.thread == get_ident():
            self.resting = False
            if self.on and sys.gettrace() is None:
                trace(self.on_call)

    def programs(self, frame):
        """Whether a frame runs the program's own code."""
        code = frame.f_code
        known = self.own.get(id(code))
        if known is None:
            f = code.co_filename
            known = self.own[id(code)] = is_programs_file(f) and not f.startswith(OURS), code
        return known[0]

    def call(self, frame, event, arg):
        """Python calls this for a function that begins."""
        if not self.on or self.agent.stopped:  # another thread has ended the watch, or this is the child of a fork
            self.end()
            if sys.gettrace() == self.call:
                trace(None)
            return None
        if self.programs(frame):
            return self.look(frame)
        self.libraries += 1
        return self.count()

    def line(self, frame, event, arg):
        """Python calls this for the program's lines, and when one of its functions returns."""
        if not self.on:
            return None
        at = frame
        if event == "return":
            self.suspended.add(frame)
        while event == "return" and at is not None and (at is frame or not self.programs(at)):
            at = at.f_back
        return self.look(at)

    def count(self):
        self.events += 1
        if self.events > self.most:
            self.end()

    def look(self, at):
        """A line has ended. The next line is of the frame at."""
        try:
            self.count()
            self.passed()
            self.at = (at, at.f_lineno) if at is not None and self.on else None
        except Exception as e:
            if raised(e):
                raise
            self.end()  # the program is close to the recursion limit
        return self.on_line if self.on else None


def stack(frame, line):
    """The frames of a line of the program that has just run, innermost first."""
    frames = []
    while frame is not None and len(frames) < DEPTH:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, line or 0))
        frame = frame.f_back
        line = frame and frame.f_lineno
    return tuple(frames)
