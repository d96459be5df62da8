"""Detects whether a process grows, by its memory as the system shows it. A sleeping process does nothing else."""

from ._real import open, os, time

# Seconds between looks, and how many of the last looks must show growth: a process may grow fast or slowly.
APART, LOOKS = 0.5, (6, 60, 600)
# Less growth than this is usual in every process.
LEAST = 256 << 10
# A look may take this share of the time. With many files in memory it takes milliseconds.
SHARE = 0.005


def grows(waits, made):
    """Waits for growth of the process's private or shared memory. made() is what the agent knows of the shared memory. False once waits() is
    false, or if the memory is unknown."""
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
    """Whether each third is above the one before: a single step up is no growth."""
    n = len(seen) // 3
    first, middle, last = seen[:n], seen[n:-n], seen[-n:]
    return max(first) < min(middle) and max(middle) < min(last) and last[-1] - first[0] >= LEAST
