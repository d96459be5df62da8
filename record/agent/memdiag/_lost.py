"""What tracemalloc loses when it ends: before Python 3.12.5 it never frees the stacks that it has seen. A window leaves a hundred thousand
bytes of a program that calls much, which are not its growth.

How many stacks there were nobody tells. What malloc has less once tracing has ended, beyond what tracemalloc says that it had, is what
malloc takes beside each entry of its tables: that bounds their number. It is some too many; but no window has lost more than the heap
has grown by meanwhile.
"""

import _tracemalloc
import sys

# Whether this Python's tracemalloc loses stacks: CPython's issue 121390.
LOSES = sys.version_info < (3, 12, 5)
# Bytes of a stack beside its frames, and of a frame; what malloc takes beside an entry of a table, and for a trace in all.
STACK, FRAME, EXTRA, TRACE = 24, 12, 16, 48


def stop(in_use, before, depth, traces):
    """Ends tracing of stacks of this depth, with about so many traces, and returns the bytes that this frees, and that it loses; before
    it began so many were in use."""
    taken, until = _tracemalloc.get_tracemalloc_memory(), in_use()
    _tracemalloc.stop()
    after = in_use()
    if not LOSES:
        return until - after, 0
    stacks = (until - after - taken - TRACE * traces) // EXTRA
    return until - after, max(0, min(after - before, stacks * (STACK + FRAME * depth)))
