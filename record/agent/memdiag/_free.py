"""Free lists: freed objects that Python caches and uses again."""

import gc
from itertools import repeat

# Python caches up to FREE freed tuples of each length up to LENGTHS.
FREE, LENGTHS = 2000, 19
ALL_FREE = FREE * LENGTHS - 32  # counting them uses some
SEVERAL = 100  # tuples that are made at once to count them
# How many freed lists, and freed dictionaries, Python caches.
KEPT = 80


def free(make):
    """Takes all free objects that make() reuses, and returns them: a window has no stack for an object that the program reuses."""
    taken = []
    for _ in range(KEPT):
        count = gc.get_count()[0]
        taken.append(make())
        if gc.get_count()[0] != count:  # the collector counts it as new, so the cache is empty
            break
    return taken


def free_tuples():
    """The number of freed tuples that Python caches. A program that makes one in each round with f(*(x for x in xs)) adds one each time, up
    to 2,000. The collector does not count a tuple as new that reuses one of them."""
    total, made = 0, []
    for length in range(1, LENGTHS + 1):
        items = [None] * length
        for _ in range(3):  # another thread may run meanwhile, or the collector
            made.clear()
            new = 0
            while not new and len(made) < FREE:
                count = gc.get_count()[0]
                made.extend(map(tuple, repeat(items, SEVERAL)))
                new = gc.get_count()[0] - count
            if 0 <= new <= SEVERAL:
                total += min(FREE, len(made) - new)
                break
    return total
