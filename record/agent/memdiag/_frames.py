"""The frames of other threads.

Python 3.11 makes a frame's object when somebody asks for it, which may run the collector. What that calls, such as a callback of a weak
reference, may let the other thread run on. Then Python writes to a frame that has ended, and later crashes. Within sys._current_frames it
also holds a lock that the other thread waits for when it starts a thread: both wait for ever.
"""

import gc
import sys


def current():
    """The innermost frame of each thread."""
    return sys._current_frames()


def back(frame):
    """The frame that called this one."""
    return frame.f_back


def variables(frame):
    """The frame's f_locals."""
    return frame.f_locals


if sys.version_info[:2] == (3, 11):
    from functools import partial
    from operator import attrgetter, call

    def whole(function, *args):
        """Calls a function of C with the collector off. Python may let other threads run after each call in its own code, so C makes all
        these calls: else another thread could change whether the collector is on, or find it off."""
        asked, calls = map(call, (gc.isenabled,)), map(call, (gc.disable, partial(function, *args), gc.enable))
        [on] = asked
        if not on:
            return function(*args)
        try:
            _, result, _ = calls
        except BaseException:
            gc.enable()
            raise
        try:
            return result
        finally:
            del result  # it may hold this function's frame: a cycle that would keep the frames of the program

    current = partial(whole, sys._current_frames)
    back = partial(whole, attrgetter("f_back"))
    variables = partial(whole, attrgetter("f_locals"))
