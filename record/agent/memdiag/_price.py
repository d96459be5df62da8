"""What operators cost more under the dispatch mode.

Where each takes long, its data drive out of the processor's caches what watching needs, which then costs some
three times what it does between quick ones. Both are measured once.
"""

import collections
import contextlib
import mmap
import statistics
import sys

from ._census import unasked
from ._clock import work

# Bytes that fill the caches of a core; and the seconds from one operator to the next in which a program's own data do.
CACHES, FAR = 4 << 20, 2e-4
# Of units that were watched and of others, the last so many are compared, once there are so many of each.
LAST, ENOUGH = 9, 3
# So many times its price an operator costs of a program that uses a GPU, until units have been compared: autograd's thread asks Python
# for each, and tensors on the GPU have to be made known to it. Of steps on an H200 it was 5 to 10.
ON_GPU = 5


class Price:
    def __init__(self, source):
        torch = source.module or sys.modules["torch"]
        with unasked(torch):
            aside = torch._C._DisableTorchDispatch()  # where the mode is on
            without = seconds(torch)
            del aside
            with contextlib.nullcontext() if source.modes() else source.mode:
                watched = seconds(torch)
        self.near, self.far = (max(1e-6, w - a) for w, a in zip(watched, without))

    def of(self, operators, took):
        """Seconds, for operators that were watched in a time."""
        far = min(1.0, max(0.0, took) / (FAR * operators)) if operators else 0.0
        return operators * (self.near + far * (self.far - self.near))


class Pace:
    """What units took that were watched, and what others took. A GPU's operators have another price than the CPU's, by which to
    measure it would wait for the GPU."""

    def __init__(self):
        self.watched, self.others = collections.deque(maxlen=LAST), collections.deque(maxlen=LAST)
        self.prices = collections.deque(maxlen=LAST)  # of those that were watched, by their operators

    def took(self, seconds, price=None):
        """Takes note of a unit, and of the price of one that was watched."""
        if price is None:
            self.others.append(seconds)
        else:
            self.watched.append(seconds)
            self.prices.append(price)

    def cost(self, price):
        """Seconds that it costs to watch what has this price."""
        if min(len(self.watched), len(self.others)) < ENOUGH:
            return ON_GPU * price
        return price * max(1.0, (statistics.median(self.watched) - statistics.median(self.others)) / max(statistics.median(self.prices), 1e-6))


def seconds(torch):
    """What a small operator takes among its like, and with nothing of it in the caches."""

    def run(times):
        begun = work()
        for _ in range(times):
            torch.empty(1)
        return (work() - begun) / times

    def cold():
        memory.move(0, CACHES // 2, CACHES // 2)
        return run(1)

    memory = mmap.mmap(-1, CACHES)  # not of malloc, which would remember its size
    run(32)
    return min(run(32), run(32)), sorted(cold() for _ in range(7))[3]
