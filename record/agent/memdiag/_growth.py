"""Whether a process grows, as it shows from outside: what a process costs of which no more is asked."""

import os
import time

# Seconds between looks, and how many of them, of late, must show growth: so often and so seldom as a process may grow.
APART, LOOKS = 0.5, (6, 60, 600)
# Growth that no process goes without.
LEAST = 256 << 10


def grows(waits):
    """Waits for the process's private memory to grow; False when that is waited for no more, or is not known."""
    page, seen = os.sysconf("SC_PAGE_SIZE"), []
    while waits():
        try:
            with open("/proc/self/statm", "rb") as f:
                _, resident, shared = f.read().split()[:3]
        except (OSError, ValueError):
            return False
        seen.append((int(resident) - int(shared)) * page)
        del seen[:-max(LOOKS)]
        if any(rises(seen[-n:]) for n in LOOKS if len(seen) >= n):
            return waits()
        time.sleep(APART)
    return False


def rises(seen):
    """Whether each third lies above the one before: one step up is no growth."""
    n = len(seen) // 3
    first, middle, last = seen[:n], seen[n:-n], seen[-n:]
    return max(first) < min(middle) and max(middle) < min(last) and last[-1] - first[0] >= LEAST
