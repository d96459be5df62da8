"""memdiag in Python: what a program can report to the recorder, and calls of memdiag itself.

The agent that records under `memdiag record -- python train.py` is in this package. `mark`, `watch` and `snapshot` reach it, and do nothing
without it. `diff` and `gate` run memdiag's program.

PYTEST_DONT_REWRITE: the recorder imports this package before pytest, which would warn about that.
"""

from ._watch import watch

TYPE_CHECKING = False  # as in typing, whose import takes milliseconds
if TYPE_CHECKING:
    import os

    from ._calls import Decision, Result

__all__ = ["diff", "gate", "mark", "snapshot", "watch"]

_running = None  # the agent of this process, once started


def _use():
    """Keeps the folder of `memdiag python-path` as long as this process, or a fork of it, lives: memdiag removes old folders that nobody
    uses."""
    import os

    folder = os.path.dirname(os.path.dirname(__spec__.origin))
    try:
        use = os.open(os.path.join(folder, "in-use"), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return  # installed by pip, or unpacked by the recorder
    try:
        os.utime(folder)  # before the lock: memdiag looks at this time when it has the lock alone and wants to remove the folder
    except OSError:
        pass  # the folder may be read-only
    try:
        import fcntl

        fcntl.flock(use, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        pass


_use()


def mark(step: "int | None" = None, phase: "str | None" = None, epoch: "int | None" = None, loss: "float | None" = None, event: "str | None" = None, batch: "int | None" = None, length: "int | None" = None) -> None:
    """Marks the end of a step, the beginning of a phase such as "eval", the beginning of an epoch, or an event such as "checkpoint".

    If the program marks steps, these count, and the steps of optimizers no longer do. Only snapshots of the same phase are compared. Growth
    with each evaluation, epoch or checkpoint is reported as such. A loss is recorded so that `memdiag verify` can compare it; losses on the
    CPU from which PyTorch starts a backward pass are recorded without a mark. batch is the number of samples, and length the length of a
    sequence, in what ran since the last such mark: from them, memdiag reports how the peak depends on the input. Never raises: a value that
    should be a number and is none is left out, and the run gets a note.
    """
    if _running is not None:
        _running.told(step, phase, epoch, loss, event, batch, length)


def snapshot() -> "str | None":
    """Takes a snapshot now, and returns the path of its file. The newest 32 of these files stay until the run ends; others are thinned out.
    Returns None without the recorder, and the path of the newest snapshot, or None, if none can be taken now. Never raises.
    """
    return None if _running is None else _running.guarded("snapshot", _running.snapshot_now)


def diff(*snapshots: "str | os.PathLike[str]") -> "Result":
    """Compares snapshots, or the first snapshot of a run with its last, like `memdiag diff --format json`.

    Returns the output of that command. Its keys are also attributes: diff(a, b).findings[0].headline. Raises RuntimeError with memdiag's
    message if a file cannot be read, or memdiag's program cannot be run, and TypeError for what is no path.
    """
    from ._calls import diff

    return diff(*snapshots)


def gate(run: "str | os.PathLike[str]", *flags: "str | float | os.PathLike[str]") -> "Decision":
    """Judges a run like `memdiag gate`, with the same flags: gate("my-run", "--warmup", 20).verdict is "leak", "clean", "inconclusive",
    or "over-budget" if only a budget such as "--max-peak" is exceeded.

    Returns the output of `--json`. Its keys are also attributes. Raises the same errors as diff.
    """
    from ._calls import gate

    return gate(run, flags)


def load_ipython_extension(ipython):
    from . import _jupyter

    _jupyter.register(ipython)


def _in_main():
    """Whether this is the main interpreter. Other interpreters share its process and the handlers of its signals."""
    import signal

    try:
        signal.signal(signal.SIGINT, None)
    except ValueError:  # only another interpreter raises this: None is no handler
        return False
    except TypeError:
        return True


def _attach(folder):
    """Starts the agent in a program that is already running. folder has memdiag's settings."""
    import json
    import os
    import sys

    from ._agent import Agent
    from ._attached import Attached
    from ._interrupts import Held

    with open(os.path.join(folder, "settings.json"), encoding="utf-8", errors="surrogateescape") as f:
        settings = json.load(f)
    agent = Agent(settings)
    agent.attached = Attached(agent, folder)
    with Held():
        try:
            agent.start()
        except BaseException:
            agent.stopped, agent.attached.done = True, True
            agent.take_back()
            raise
    theirs = sys.modules.get("memdiag")
    if getattr(getattr(theirs, "mark", None), "__code__", None) == mark.__code__:  # the same version
        theirs._running = agent
        agent.undo.append(lambda: setattr(theirs, "_running", None))


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
        what = "the agent did not start: %s: %s" % (type(e).__name__, e)
        path = os.path.join(settings["dir"], settings["report"] + "%d.json" % os.getpid())
        with open(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600), "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), "state": "failed", "notes": [what], "unseen": [{"what": what}]}, f)
