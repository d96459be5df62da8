"""The container that became longer, on the way to what a walk found.

An early walk finds the first of what is kept: of a dict of caches, in which is one, a field of that cache. No later walk may be
due, or any be long enough.
"""


class Ways:
    """Of each stack the containers on the way to what a walk found, innermost first, which have their lengths of then."""

    def __init__(self):
        self.of = {}

    def found(self, stack, place):
        self.of[stack] = tuple(place.containers()) if place is not None else ()

    def longer(self, stack, items, length):
        """What Votes.holder returns, of the longest container that has more items than it had then, and more than so many; None for
        none. length returns what a container has now, or None."""
        best, most = None, max(1, items)
        for c in self.of.get(stack, ()):
            n = length((c,)) or 0
            if n > max(c.items, most):
                best, most = c, n
        return best and (best.path(), best.kind, most, (best,))
