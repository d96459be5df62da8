"""What is called in each forked child, for as long as that is wanted: Python takes no such registration back."""

import os
import types


def after_fork(f):
    """Has f called in each forked child; returns what ends that. An empty function stays registered, which refers to nothing of
    this package."""
    here = [f]

    def forked():
        for f in here:
            f()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=types.FunctionType(forked.__code__, {}, closure=forked.__closure__))
    return here.clear
