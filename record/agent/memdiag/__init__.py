"""memdiag's agent in a Python process, and the one function for those who want to help it.

Under `memdiag record -- python train.py` this package is importable; `mark` tells it where
a step ends. Nothing else here is for programs to call.

PYTEST_DONT_REWRITE: the recorder imports it before pytest, which would warn of that.
"""

_running = None  # the agent of this process, once started


def mark(step=None, phase=None):
    """Marks the end of a step, or the beginning of a phase such as "eval".

    With a step, the program counts the steps from now on, and optimizers no longer do.
    Only snapshots of equal phase are compared. Never raises.
    """
    if _running is not None:
        _running.told(step, phase)


def _in_main():
    """Whether this is the main interpreter: others share its process and the handlers of its signals."""
    import signal

    try:
        signal.signal(signal.SIGINT, None)
    except ValueError:  # which only another interpreter's call raises: None is no handler
        return False
    except TypeError:
        return True


def _start():
    import os

    settings = os.environ.get("MEMDIAG_AGENT")
    if not settings or not _in_main():
        return
    import json

    settings = json.loads(settings)
    settings["dir"] = os.environ["MEMDIAG_AGENT_DIR"]
    global _running
    try:
        from ._agent import Agent

        _running = Agent(settings)
        _running.start()
    except Exception as e:
        _running = None
        path = os.path.join(settings["dir"], settings["report"] + "%d.json" % os.getpid())
        with open(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600), "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), "state": "failed", "notes": ["the agent did not start: %s: %s" % (type(e).__name__, e)]}, f)
