"""Lists objects that Python's collector knows."""

import operator
from functools import partial, reduce
from itertools import chain, compress, repeat, starmap, tee


def of_types(kinds, find, *args):
    """Those of these types in the list of find(*args), which is gc.get_objects or gc.get_referrers.

    The list also has tuples that another thread is still filling. If we held one when that thread goes on, filling would fail with
    SystemError in the program. So the list exists only within the one call of list() below. All its parts are C's, so no other thread
    runs meanwhile. They allocate nothing for each object: while Python's heap is traced, that would take most of the time.
    """
    copies = chain.from_iterable(map(tee, starmap(find, [args]), [1 + len(kinds)]))
    # Types are compared by identity: a type's own == may be the program's.
    each = map(map, repeat(operator.is_), map(map, repeat(type), copies), map(repeat, kinds))
    chosen = map(reduce, [partial(map, operator.or_)], [each])
    return list(chain.from_iterable(map(compress, copies, chosen)))


def of_other_types(kind, find, *args):
    """Like of_types, for the objects of all other types."""
    copies = chain.from_iterable(map(tee, starmap(find, [args])))
    chosen = map(map, [operator.is_not], map(map, [type], copies), [repeat(kind)])
    return list(chain.from_iterable(map(compress, copies, chosen)))
