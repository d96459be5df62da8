"""Finds the container that became longer, on the way to what a walk found.

An early walk finds the first of the kept objects: in a dict of caches that has only one cache so far, a field of that cache. Possibly no
later walk is due, or none lasts long enough.
"""


class Ways:
    """By stack, the containers on the way to what a walk found, innermost first, with the lengths that they had then."""

    def __init__(self):
        self.of = {}

    def found(self, stack, place):
        self.of[stack] = tuple(place.containers()) if place is not None else ()

    def longer(self, stack, items, length):
        """Of the containers that have more items than they had then, and more than items, the longest, as Votes.holder returns it; None if
        there is none. length returns how many items a container has now, or None."""
        best, most = None, max(1, items)
        for c in self.of.get(stack, ()):
            n = length((c,)) or 0
            if n > max(c.items, most):
                best, most = c, n
        return best and (best.path(), best.kind, most, (best,))
