"""weakref.finalize is given a bound method, which holds the object that it waits for; --fixed gives it a function."""
# kind: services
# holder: _registry
# cause: container-grows cache-without-bound
# rate: 32768 B/buffer
import sys
import weakref

import numpy as np

FIXED = "--fixed" in sys.argv
closed = 0


def count_closed():
    global closed
    closed += 1


class Buffer:
    def __init__(self, number):
        self.data = np.full(4096, number, dtype=np.float64)  # leak
        weakref.finalize(self, count_closed if FIXED else self.close).atexit = False  # leak

    def close(self):
        count_closed()


rng = np.random.default_rng(0)
total = 0.0
for number in range(12_000):
    buffer = Buffer(number % 101)
    total += float(buffer.data.mean()) + float(np.median(rng.normal(size=20_000)))
print(f"total {total:.4f}")
