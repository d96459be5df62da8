"""Claims: files in the run's folder that say which process records what. That of a process beside the others says what the agent has
taken in it, too: all of them have one budget.

A number is used again by another process, so that a claim has the time at which its process began.
"""

import os

# The most other processes of a rank that are recorded at once, and in all.
AT_ONCE, IN_ALL = 32, 256
# What the agent may take in all of them together: so many seconds, and this share of the time since the command began. One that is
# recorded counts as so many seconds at least, which it may take.
ALLOWANCE, SHARE, EACH = 4.8, 0.05, 0.3
CHILD = ".claim_tick_child"
PERMISSIONS = 0o600


def claim(path):
    """Whether a claim is this process's from now on."""
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
    """Says what the agent has taken in this process."""
    try:
        f = os.open(path, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(f, text(seconds))  # which becomes no shorter
    except OSError:
        pass
    os.close(f)


def text(seconds):
    return b"%d %d %d\n" % (os.getpid(), began("self"), 1000 * seconds)


def began(pid):
    """When a process began, as the kernel counts; 0 where it does not tell, as of one that has ended. This one is "self": in a
    namespace of its own another may have its number in /proc."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as f:
            return int(f.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def beside(dir, seconds):
    """The path of the claim by which another process may be recorded, so many seconds after the command began; None for none now."""
    taken, there = 0.0, 0
    for n in range(1, IN_ALL + 1):  # none goes before the run ends, and the folder of many ranks takes long to list
        path = os.path.join(dir, CHILD + str(n))
        try:
            with open(path, "rb") as f:
                pid, start, spent = map(int, f.read().split())
        except FileNotFoundError:
            return None if there >= AT_ONCE or taken + EACH > ALLOWANCE + SHARE * seconds else path
        except (OSError, ValueError):
            pid = start = spent = 0  # it is being written
        lives = not start or began(pid) == start
        there += lives
        taken += max(spent / 1000, EACH if lives else 0)
    return None
