"""Leaks a bytearray of 10,000 bytes a step; make.sh runs it under memray.

With the argument "tracemalloc" it writes its own snapshots instead.
"""

import sys
import tracemalloc

cache = []


def remember():
    cache.append(bytearray(10_000))  # the leak


def train(steps):
    for _ in range(steps):
        remember()


if sys.argv[1] == "tracemalloc":
    tracemalloc.start(25)
    for held in (10, 30, 60):
        train(held - len(cache))
        tracemalloc.take_snapshot().dump(f"tracemalloc_{held}.pickle")
else:
    train(int(sys.argv[1]))
