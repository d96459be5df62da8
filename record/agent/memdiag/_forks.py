"""Calls functions at each fork, as long as that is wanted. Python itself cannot unregister them."""

import _warnings
import sys
import types

from ._real import open, os

# Part of Python's warning.
BESIDE = " is multi-threaded, use of "


def at_fork(before, child):
    """Calls before in a process that is about to fork, and child in the forked child. Returns a function that ends that. Empty functions stay
    registered, which refer to nothing of this package."""
    first, then = [before], [child]

    def call(functions):
        def forked():
            for f in functions:
                f()

        return types.FunctionType(forked.__code__, {}, closure=forked.__closure__)

    def end():
        first.clear()
        then.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=call(first), after_in_child=call(then))
    return end


class Hidden:
    """A filter of warnings that hides one of a fork beside threads, and then is gone."""

    def __init__(self):
        self.filters, self.filter = [], ("ignore", self, DeprecationWarning, None, 0)

    def begin(self):
        self.end()
        self.filters = getattr(sys.modules.get("warnings"), "filters", _warnings.filters)
        self.filters.insert(0, self.filter)

    def end(self):
        if self.filter in self.filters:
            self.filters.remove(self.filter)

    def match(self, text):
        """Stands for that of a regular expression. Python is going through the filters: only a match, at which it stops, may remove this one."""
        if BESIDE not in text:
            return False
        self.end()
        return True

    def forks(self):
        """Called before a fork. From 3.12 on, Python then warns of other threads. Hides that where the only one is ours."""
        try:
            if sys.version_info >= (3, 12) and threads() == 2:
                self.begin()
        except (OSError, ValueError, IndexError):
            pass  # no Linux


def threads():
    """The process's threads, as Python counts them before it warns."""
    with open("/proc/self/stat", "rb") as f:
        return int(f.read().rpartition(b")")[2].split()[17])
