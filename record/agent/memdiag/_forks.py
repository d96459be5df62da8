"""Calls a function in each forked child, as long as that is wanted. Python itself cannot unregister such a function."""

import types

from ._real import os


def after_fork(f):
    """Calls f in each forked child; returns a function that ends that. An empty function stays registered, which refers to nothing of this
    package."""
    here = [f]

    def forked():
        for f in here:
            f()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=types.FunctionType(forked.__code__, {}, closure=forked.__closure__))
    return here.clear
