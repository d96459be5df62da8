"""The clock that measures the agent's own work."""

from _thread import get_ident

from ._real import time

work = time.thread_time  # processor time: on a busy machine, the clock on the wall goes on while we wait

# While Python may have to call us for its lines, a library's instructions take longer. This share of their time is due to us.
SLOWS = 0.6


def clock():
    """The processor clock of this thread, which other threads can read; None if the system has none."""
    return time.pthread_getcpuclockid(get_ident()) if hasattr(time, "pthread_getcpuclockid") else None


def read(clock):
    """Seconds of a clock; 0 if its thread has ended or belongs to another process."""
    try:
        return work() if clock is None else time.clock_gettime(clock)
    except OSError:
        return 0.0
