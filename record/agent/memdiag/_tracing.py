"""The agent's trace and profile functions, and in which threads Python may call them.

Before 3.13, Python copies a frame's variables to its f_locals before such a call, and back after it. If another thread cleared f_locals
meanwhile, the frame would lose its variables.
"""

import sys
import types
from _thread import get_ident

from ._frames import back, current
from ._real import os

# The names of the functions, and their files.
FUNCTIONS = "call", "line", "__call__"
FILES = tuple(os.path.join(os.path.dirname(__spec__.origin), name) for name in ("_code.py", "_leave.py", "_passes.py"))
TRACE, PROFILE, LEFT = 1, 2, 4
# Flags of a function's code, as in inspect: of a generator, a coroutine and an asynchronous generator.
SUSPENDS = 0x20 | 0x80 | 0x200
# By thread: TRACE and PROFILE for a function that is on. LEFT: one was on, and its last call may not have returned.
THREADS = {}


def trace(function):
    """Calls sys.settrace with a function of the agent, or with None."""
    begin_or_end(sys.settrace, TRACE, function)


def profile(function):
    """Calls sys.setprofile with a function of the agent, or with None."""
    begin_or_end(sys.setprofile, PROFILE, function)


def begin_or_end(call, kind, function):
    me = get_ident()
    if function is None:
        call(None)
        THREADS[me] = THREADS.get(me, 0) & ~kind | LEFT
    else:
        THREADS[me] = THREADS.get(me, 0) | kind
        call(function)


class Suspended:
    """The frames of generators and coroutines that are watched and do not run now. Python tells a yield and a return alike. Frames of functions
    are not stored: what a function has had must be gone when it returns."""

    def __init__(self):
        self.frames = {}  # by id

    def add(self, frame):
        """Called when a frame returns or yields."""
        if frame.f_code.co_flags & SUSPENDS:
            self.frames[id(frame)] = frame

    def all(self):
        """Yields the frames of this thread that run, and those that do not."""
        frame = sys._getframe(1)
        while frame is not None:
            yield frame
            frame = back(frame)
        yield from self.frames.values()


def ours(function):
    """Whether a frame's trace function is None or the agent's, and not the program's: a debugger may wait at its prompt."""
    owner = function.__self__ if type(function) is types.MethodType else function
    return owner is None or type(owner).__module__.startswith(__package__)


def threads():
    """The threads in which a function is on or runs. It is a view: it changes as they begin and end."""
    if THREADS:
        frames = current()
        for thread, state in list(THREADS.items()):
            if thread not in frames or state == LEFT and not runs(frames[thread]):
                THREADS.pop(thread, None)
        frames.clear()  # this frame is among them, and a cycle would keep its callers' variables
    return THREADS.keys()


def runs(frame):
    """Whether a frame is one of these functions', or was called by one."""
    while frame is not None:
        if frame.f_code.co_name in FUNCTIONS and frame.f_code.co_filename in FILES:
            return True
        frame = back(frame)
    return False
