"""Free objects that Python keeps and makes others of."""

import gc
from itertools import repeat

# Of tuples that are free Python keeps so many of each length, up to this one.
FREE, LENGTHS = 2000, 19
ALL_FREE = FREE * LENGTHS - 32  # to count them uses some
SEVERAL = 100  # that are made at once to count them
# Lists and dictionaries that are free and that Python keeps, of each.
KEPT = 80


def free(make):
    """Free objects that Python keeps and makes others of: nothing tells of one that the program takes in a window where it was made."""
    taken = []
    for _ in range(KEPT):
        count = gc.get_count()[0]
        taken.append(make())
        if gc.get_count()[0] != count:  # the collector had not counted it before
            break
    return taken


def free_tuples():
    """Tuples that are free and that Python keeps: a program that makes one anew in each round, as f(*(x for x in xs)) does,
    has one more each time, until there are 2,000. The collector does not count one that is made of them as new."""
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
