"""What a person would call this process, as far as Python's own libraries tell."""

import re
import sys

# What multiprocessing calls processes to which nobody gives a name.
UNNAMED = re.compile(r"[A-Za-z]*Process-([0-9:]+)")
POOLED = re.compile(r"[A-Za-z]*PoolWorker-([0-9:]+)")


def started():
    """Whether multiprocessing started this process, which may have no name as yet."""
    return bool(role()) or any(word.startswith("from multiprocessing.") for word in getattr(sys, "orig_argv", [])[1:])


def helps():
    """Whether this process does nothing of the program's: multiprocessing has helpers."""
    return started() and not role()


def role():
    """"loader worker 3", "pool worker 1", "produce 2" of a target produce, a name that was given; "" for the main process."""
    try:
        worker = getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None)
        if worker is not None:
            return "loader worker %d" % worker.id
        process = getattr(sys.modules.get("multiprocessing.process"), "_current_process", None)
        if process is None or process.name == "MainProcess":
            return ""
        pooled, unnamed = POOLED.fullmatch(process.name), UNNAMED.fullmatch(process.name)
        if pooled:
            return "pool worker " + pooled[1]
        if not unnamed:
            return str(process.name)
        target = getattr(process, "_target", None)
        if getattr(target, "__module__", "") == "concurrent.futures.process":
            return "executor worker " + unnamed[1]
        if getattr(target, "__module__", "") == "torch.utils.data._utils.worker":
            return "loader worker"  # it does not know its number yet
        if getattr(target, "__module__", "") == "torch.multiprocessing.spawn":
            target = process._args[0]
        return "%s %s" % (getattr(target, "__name__", "process"), unnamed[1])
    except Exception:
        return ""  # half imported
