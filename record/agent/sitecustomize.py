"""Starts memdiag's agent in a Python process that `memdiag record` launched.

Python imports this module at its start, because its folder is first on PYTHONPATH.
It then makes room for the sitecustomize that would have been imported without it.
Whatever goes wrong here must not reach the program.
"""


def _start():
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    try:
        if sys.version_info >= (3, 10):  # an older one has not all that the agent is written in
            import memdiag

            memdiag._start()
    except Exception:
        pass  # memdiag sees that no agent reported, and says so
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401  the user's own, or the system's
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


_start()
del _start
