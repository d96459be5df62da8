"""How much longer operators take under the dispatch mode.

If operators take long, their data evict what watching needs from the processor's caches. Watching then costs about three times as much as
between fast operators. Both prices are measured once.
"""

import collections
import contextlib
import mmap
import statistics
import sys

from ._census import unasked
from ._clock import work

# CACHES: bytes that fill the caches of a core. FAR: seconds between two operators in which the program's own data fill them.
CACHES, FAR = 4 << 20, 2e-4
# The last LAST watched units are compared with as many others, once there are ENOUGH of each.
LAST, ENOUGH = 9, 3
# In a program that uses a GPU, an operator is assumed to cost so many times its price until units have been compared: autograd's thread
# calls Python for each, and tensors on the GPU must be wrapped. In steps on an H200 it was 5 to 10.
ON_GPU = 5


class Price:
    def __init__(self, source):
        torch = source.module or sys.modules["torch"]
        with unasked(torch):
            aside = torch._C._DisableTorchDispatch()  # the mode may be on
            without = seconds(torch)
            del aside
            with contextlib.nullcontext() if source.modes() else source.mode:
                watched = seconds(torch)
        self.near, self.far = (max(1e-6, w - a) for w, a in zip(watched, without))

    def of(self, operators, took):
        """The extra seconds of so many watched operators in a unit that took so long."""
        far = min(1.0, max(0.0, took) / (FAR * operators)) if operators else 0.0
        return operators * (self.near + far * (self.far - self.near))


class Pace:
    """The times of watched and of other units. Operators on a GPU have another price than on the CPU, and measuring it directly would wait
    for the GPU."""

    def __init__(self):
        self.watched, self.others = collections.deque(maxlen=LAST), collections.deque(maxlen=LAST)
        self.prices = collections.deque(maxlen=LAST)  # of the watched units, from the number of their operators

    def took(self, seconds, price=None):
        """Records the time of a unit and, if it was watched, its price."""
        if price is None:
            self.others.append(seconds)
        else:
            self.watched.append(seconds)
            self.prices.append(price)

    def cost(self, price):
        """Seconds that watching a unit of this price costs."""
        if min(len(self.watched), len(self.others)) < ENOUGH:
            return ON_GPU * price
        return price * max(1.0, (statistics.median(self.watched) - statistics.median(self.others)) / max(statistics.median(self.prices), 1e-6))


def seconds(torch):
    """Seconds that a small operator takes: among others like it, and with cold caches."""

    def run(times):
        begun = work()
        for _ in range(times):
            torch.empty(1)
        return (work() - begun) / times

    def cold():
        memory.move(0, CACHES // 2, CACHES // 2)
        return run(1)

    memory = mmap.mmap(-1, CACHES)  # not from malloc, which would adapt to its size
    run(32)
    return min(run(32), run(32)), sorted(cold() for _ in range(7))[3]
