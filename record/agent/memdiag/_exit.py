"""Ends of the process without Python's exit handlers: os._exit, as in multiprocessing's forks."""

import os
import re
import sys

REAL = os._exit
# PyTorch's messages when memory runs out, on GPUs and on the CPU.
NO_MEMORY = re.compile("out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


def watch(agent):
    """Makes os._exit report the end first. A process that is killed reports none."""

    def _exit(status):
        try:
            if agent.pid == os.getpid() and not agent.asleep:
                agent.status = status if type(status) is int else 0
                agent.report("finished")
        finally:
            REAL(status)

    _exit.__doc__ = REAL.__doc__
    _exit.__module__, _exit.__qualname__ = "os", "_exit"  # pickle finds it by its name
    agent.replace(os, "_exit", _exit)


def failure():
    """The name of the exception that ended the main program, and whether memory ran out, which the name may not show. "" if there was no
    exception, and for Ctrl-C."""
    at, kind = getattr(sys, "last_traceback", None), getattr(sys, "last_type", None)
    if at is None or kind is KeyboardInterrupt or at.tb_frame.f_globals.get("__name__") not in ("__main__", "runpy"):
        return ""  # exceptions in pytest or IPython, which go on
    args = getattr(getattr(sys, "last_value", None), "args", ())
    memory = kind is RuntimeError and any(type(a) is str and NO_MEMORY.search(a[:4096]) for a in args)
    return kind.__name__ + (": out of memory" if memory else "")
