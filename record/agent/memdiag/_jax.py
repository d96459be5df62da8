"""JAX: its own profile of device memory, by the stack that allocated each live array, in pprof's format.

JAX has no optimizer that shows steps. Snapshots are taken by the clock, or where the program marks its steps.
"""

import sys

# Fields of a pprof profile: the time in nanoseconds, which JAX leaves out; strings; and comments, which are numbers of strings. Fields that
# are appended to a profile are added to it.
TIME, STRING, COMMENT = b"\x48", b"\x32", b"\x68"
# Strings are counted in profiles of at most so many bytes.
LARGEST = 1 << 22


class Jax:
    def __init__(self, agent):
        self.agent = agent
        self.ready = False

    def locked(self):
        """Whether JAX is at work on its devices. It takes locks that no thread may take twice, and a look by the clock runs in the
        program's own thread, between any two of its instructions."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        locks = (getattr(bridge, name, None) for name in ("_backend_lock", "_plugin_lock"))
        return any(lock is not None and lock.locked() for lock in locks)

    def tick(self):
        """Starts to take profiles once the program itself has used a device. Earlier, a profile would start one."""
        if self.ready or self.agent.torch.module is not None or not initialized():
            return
        self.ready = True
        self.agent.heap.untrace()  # tracemalloc slows down all tracing and compiling
        if not self.agent.step:
            self.agent.begin_anew()
            self.agent.drop_ticks()

    def boundary(self, step):
        self.tick()

    def dump(self, holders):
        """The bytes of a snapshot file."""
        from gzip import compress, decompress
        from ._counters import text, unsigned
        profile, more = sys.modules["jax"].profiler.device_memory_profile(), TIME + unsigned(int(self.agent.now() * 1e6) * 1000)
        n = strings(decompress(profile)) if holders else 0
        for i, holder in enumerate(holders if n else ()):
            more += STRING + text("memdiag: holder %d %d %d %s %s" % holder) + COMMENT + unsigned(n + i)
        return profile + compress(more)


def strings(profile):
    """How many strings a profile has; 0 if that is not known."""
    n = at = 0
    while at < len(profile) <= LARGEST:
        tag, at = number(profile, at)
        n += tag == STRING[0]
        if tag & 7 == 2:
            length, at = number(profile, at)
            at += length
        elif tag & 7 == 0:
            _, at = number(profile, at)
        else:
            return 0
    return n


def number(b, at):
    """A variable-length number, and where it ends."""
    n = shift = 0
    while b[at] & 0x80:
        n |= (b[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return n | b[at] << shift, at + 1


def initialized():
    """Whether the program has JAX, and JAX has a device."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None)) and hasattr(sys.modules.get("jax"), "profiler")  # else it is being imported
