"""What a person would call this process, as far as Python's own libraries know."""

import re
import sys

from ._real import open, os

# Names that multiprocessing gives to processes if nobody else does.
UNNAMED = re.compile(r"[A-Za-z]*Process-([0-9:]+)")
POOLED = re.compile(r"[A-Za-z]*PoolWorker-([0-9:]+)")


def started():
    """Whether multiprocessing started this process, which may not have its name yet."""
    return bool(role()) or any(word.startswith("from multiprocessing.") for word in getattr(sys, "orig_argv", [])[1:])


def helps():
    """Whether this process is a helper of multiprocessing, which runs nothing of the program."""
    return started() and not role()


def role():
    """"loader worker 3", "pool worker 1", "produce 2" for a target called produce, or the name that the process was given; "" for the main
    process."""
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
        if process.name.startswith("LokyProcess-"):  # joblib's
            return "loky worker " + unnamed[1]
        if not unnamed:
            return str(process.name)
        if title():
            return title()
        target = getattr(process, "_target", None)
        if getattr(target, "__module__", "") == "concurrent.futures.process":
            return "executor worker " + unnamed[1]
        if getattr(target, "__module__", "") == "torch.utils.data._utils.worker":
            return "loader worker"  # it does not know its number yet
        if getattr(target, "__module__", "") == "torch.multiprocessing.spawn":
            target = process._args[0]
        return "%s %s" % (getattr(target, "__name__", "process"), unnamed[1])
    except Exception:
        return ""  # a library is being imported


def title():
    """The name that this process gave itself, as with setproctitle, such as "ray::Trainer" for "ray::Trainer.step()"; "" for none."""
    name = written()
    return "" if name in ("", inherited) else re.sub(r"^(ray::[^.( ]+).*", r"\1", name)


inherited = ""  # the name of the process that forked this one


def forked():
    """Called in the child of a fork."""
    global inherited
    inherited = written()


def written():
    """What this process, or the one that forked it, wrote over its command line; "" for nothing."""
    try:
        with open("/proc/self/cmdline", "rb") as f:
            words = f.read().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    return "" if len(words) > 1 or words[0] in (getattr(sys, "orig_argv", None) or words)[:1] else words[0]


def below(reports, variable=""):
    """Whether an agent runs in a parent, grandparent and so on of this process. The path of its report begins with reports, and its
    environment began with variable, such as "RANK=0", if that is given."""
    pid, seen = os.getppid(), set()
    while pid > 1 and pid not in seen:
        if os.path.exists(reports + "%d.json" % pid) and (not variable or began_with(pid, variable)):
            return True
        seen.add(pid)
        try:
            with open("/proc/%d/stat" % pid, "rb") as f:
                pid = int(f.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return False


def began_with(pid, variable):
    """Whether a process had a variable in its environment when it began."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            return os.fsencode(variable) in f.read().split(b"\0")
    except OSError:
        return False
