"""The objects that Python's collector knows."""

import operator
from functools import partial, reduce
from itertools import chain, compress, repeat, starmap, tee


def of_types(kinds, find, *args):
    """Those of these types among what find(*args) lists, gc.get_objects or gc.get_referrers.

    In the list are also tuples that another thread still fills. Were we to hold one when that thread goes on, filling
    it would fail, SystemError, in the program. So the list comes and goes within the one call of list() below, of which
    all parts are C's: no other thread runs meanwhile. They make nothing for each object: where Python's heap is traced,
    that would take most of the time.
    """
    copies = chain.from_iterable(map(tee, starmap(find, [args]), [1 + len(kinds)]))
    # Types are compared by what they are: a type's own == may be the program's.
    each = map(map, repeat(operator.is_), map(map, repeat(type), copies), map(repeat, kinds))
    chosen = map(reduce, [partial(map, operator.or_)], [each])
    return list(chain.from_iterable(map(compress, copies, chosen)))


def of_other_types(kind, find, *args):
    """Those of other types, as above."""
    copies = chain.from_iterable(map(tee, starmap(find, [args])))
    chosen = map(map, [operator.is_not], map(map, [type], copies), [repeat(kind)])
    return list(chain.from_iterable(map(compress, copies, chosen)))
