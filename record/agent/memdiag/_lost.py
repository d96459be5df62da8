"""What tracemalloc leaks when it ends: before Python 3.12.5 it never frees the stacks that it has stored. A window leaks about 100 kB
in a program that calls much, which is not the program's growth.

The number of stacks is unknown, but bounded. When tracing ends, malloc frees more than tracemalloc has counted: the rest is what malloc adds to
each entry of its tables. The bound is somewhat too high. But a window never leaks more than the heap has grown meanwhile.
"""

import _tracemalloc
import sys

# Whether this Python's tracemalloc leaks stacks: CPython's issue 121390.
LOSES = sys.version_info < (3, 12, 5)
# Bytes: of a stack without its frames; of a frame; that malloc adds to an entry of a table; of a trace beyond tracemalloc's count.
STACK, FRAME, EXTRA, TRACE = 24, 12, 16, 48


def stop(in_use, before, depth, traces):
    """Ends tracing, and returns the bytes that this frees and the bytes that it leaks. before: bytes in use before tracing began. depth: frames of
    a stack. traces: about how many traces there are."""
    taken, until = _tracemalloc.get_tracemalloc_memory(), in_use()
    _tracemalloc.stop()
    after = in_use()
    if not LOSES:
        return until - after, 0
    stacks = (until - after - taken - TRACE * traces) // EXTRA
    return until - after, max(0, min(after - before, stacks * (STACK + FRAME * depth)))
