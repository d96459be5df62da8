"""The clock by which the agent's own work is measured."""

import time
from _thread import get_ident

work = time.thread_time  # of the agent itself: on a busy machine the clock runs on without it

# While Python may have to call us for its lines, a library's instructions take longer, too. That part of their time is due to us.
SLOWS = 0.6


def clock():
    """The processor's clock of this thread, which others can read; None where the system has none."""
    return time.pthread_getcpuclockid(get_ident()) if hasattr(time, "pthread_getcpuclockid") else None


def read(clock):
    """0 where the thread has ended, or is another process's."""
    try:
        return work() if clock is None else time.clock_gettime(clock)
    except OSError:
        return 0.0
