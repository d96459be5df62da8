"""Claims: files in the run's folder that say which process records what. The claim of a process that is recorded beside the others also has
the seconds that the agent took in it: all these processes share one budget.

The number of a process may be used again by another one. So a claim also has the time at which its process began.
"""

from ._real import open, os

# How many other processes of a rank are recorded at most, at once and in all.
AT_ONCE, IN_ALL = 32, 256
# What the agent may take in all of them together: seconds at the start, plus a share of the time since the command began. Each recorded process
# counts at least EACH seconds, since it may take these.
ALLOWANCE, SHARE, EACH = 4.8, 0.05, 0.3
CHILD = ".claim_tick_child"
PERMISSIONS = 0o600


def claim(path):
    """Makes a claim for this process; False if another one has it."""
    try:
        f = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PERMISSIONS)
    except FileExistsError:
        return False
    try:
        os.write(f, text(0))
    except OSError:
        pass  # the disk is full
    os.close(f)
    return True


def charge(path, seconds):
    """Writes into the claim the seconds that the agent has taken in this process."""
    try:
        f = os.open(path, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(f, text(seconds))  # the text never becomes shorter
    except OSError:
        pass
    os.close(f)


def text(seconds):
    return b"%d %d %d\n" % (os.getpid(), began("self"), 1000 * seconds)


def began(pid):
    """When a process began, in the kernel's ticks; 0 if unknown or ended. This process is "self": in a PID namespace, /proc may have another
    process under its number."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as f:
            return int(f.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def beside(dir, seconds):
    """The path of a claim for one more process, so many seconds after the command began; None if none may be recorded now."""
    taken, there = 0.0, 0
    for n in range(1, IN_ALL + 1):  # in order: none is removed before the run ends, and the folder of many ranks takes long to list
        path = os.path.join(dir, CHILD + str(n))
        try:
            with open(path, "rb") as f:
                pid, start, spent = map(int, f.read().split())
        except FileNotFoundError:
            return None if there >= AT_ONCE or taken + EACH > ALLOWANCE + SHARE * seconds else path
        except (OSError, ValueError):
            pid = start = spent = 0  # the file is being written
        lives = not start or began(pid) == start
        there += lives
        taken += max(spent / 1000, EACH if lives else 0)
    return None
