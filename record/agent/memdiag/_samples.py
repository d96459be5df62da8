"""Takes items of a container; of a large one only some. Methods that a subclass defines are not called."""

import collections
import itertools

from ._length import LISTS

# Larger dictionaries, sets and deques are not listed completely. Listing so many items takes 2 ms.
LISTED = 20_000


def some(c, most):
    """The items of a list, set or similar; of a large one the first and the last items, which are new."""
    base = base_of(type(c))
    if base.__len__(c) <= most:
        return list(base.__iter__(c))
    first = itertools.islice(base.__iter__(c), most // 4)
    if base in (list, tuple):
        last = base.__getitem__(c, slice(most // 4 - most, None))
    else:
        last = base.__reversed__(c) if base is collections.deque else base.__iter__(c)
    return [*first, *itertools.islice(last, most - most // 4)]


def some_items(d, most):
    """The same for the keys and values of a dict. Values are not looked up, since that calls methods of the key."""
    items = dict.items(d)
    if len(items) <= most:
        return list(items)
    return [*itertools.islice(items, most // 4), *itertools.islice(reversed(items), most - most // 4)]


def spread(c, most):
    """The items of a list, set or similar; of a large one, items at equal distances, which are like the rest. Items of an earlier look may
    be neither among the first nor among the last."""
    base = base_of(type(c))
    n = base.__len__(c)
    if n <= most or base not in (list, tuple) and n > LISTED:
        return some(c, most)
    if base not in (list, tuple):
        c, base = list(base.__iter__(c)), list
    return apart(c, base, n, most)


def spread_items(d, most):
    """The same for the keys and values of a dict."""
    n = dict.__len__(d)
    return some_items(d, most) if n <= most or n > LISTED else apart(list(dict.items(d)), list, n, most)


def apart(items, base, n, most):
    return [base.__getitem__(items, i * (n - 1) // (most - 1)) for i in range(most)]


def base_of(t):
    return next(b for b in LISTS if issubclass(t, b))
