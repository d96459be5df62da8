"""Counts a program's steps and says, when it ends, what they took of the processor: in the middle, and the last half on average."""

import atexit
import statistics
import sys
import time

leaks = sys.argv[1:] == ["leak"]
_marks = [time.process_time()]


def step(*_):
    """The end of a step."""
    _marks.append(time.process_time())


def steps(n):
    for i in range(n):
        yield i
        step()


@atexit.register
def _said():
    took = [b - a for a, b in zip(_marks, _marks[1:])]
    late = took[len(took) // 2 :]
    print(statistics.median(took), sum(late) / len(late))
