"""The objects that Python's collector knows."""

from functools import partial
from itertools import chain, compress, starmap, tee


def of_types(kinds, find, *args):
    """Those of these types among what find(*args) lists, gc.get_objects or gc.get_referrers.

    In the list are also tuples that another thread still fills. Were we to hold one when that thread goes on, filling
    it would fail, SystemError, in the program. So the list comes and goes within the one call of list() below, of which
    all parts are C's: no other thread runs meanwhile.
    """
    ids = {id(k) for k in kinds}  # a type's own hash may be the program's
    twice = chain.from_iterable(map(tee, starmap(find, [args])))
    chosen = map(partial(map, ids.__contains__), map(partial(map, id), map(partial(map, type), twice)))
    return list(chain.from_iterable(map(compress, twice, chosen)))
