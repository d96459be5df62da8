"""Whether a process grows, as it shows from outside: all that is asked of a process that sleeps."""

import os
import time

# Seconds between looks, and how many of them, of late, must show growth: so often and so seldom as a process may grow.
APART, LOOKS = 0.5, (6, 60, 600)
# Growth that no process goes without.
LEAST = 256 << 10
# A look may take this share of the time; with many files in memory it takes milliseconds.
SHARE = 0.005


def grows(waits, made):
    """Waits for the process's private memory to grow, or its shared memory, of which made() is what the agent knows of it; False
    when that is waited for no more, or is not known."""
    page, private, shared = os.sysconf("SC_PAGE_SIZE"), [], []
    while waits():
        start = time.thread_time()
        try:
            with open("/proc/self/statm", "rb") as f:
                _, resident, others = f.read().split()[:3]
        except (OSError, ValueError):
            return False
        private.append((int(resident) - int(others)) * page)
        shared.append(max(mapped(), made()))
        for seen in private, shared:
            del seen[:-max(LOOKS)]
            if any(rises(seen[-n:]) for n in LOOKS if len(seen) >= n):
                return waits()
        time.sleep(max(APART, (time.thread_time() - start) / SHARE))
    return False


def mapped():
    """Bytes of shared memory that the process has mapped and touched."""
    try:
        with open("/proc/self/status", "rb") as f:
            return next((int(line.split()[1]) << 10 for line in f if line.startswith(b"RssShmem:")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def rises(seen):
    """Whether each third lies above the one before: one step up is no growth."""
    n = len(seen) // 3
    first, middle, last = seen[:n], seen[n:-n], seen[-n:]
    return max(first) < min(middle) and max(middle) < min(last) and last[-1] - first[0] >= LEAST
