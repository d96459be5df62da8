"""JAX: its own profile of device memory, by the stack that made each live array, in pprof's format.

JAX has no optimizer that could tell steps: snapshots are by the clock, or where the program marks
its steps.
"""

import sys

# The field of a pprof profile that says when it was taken, in nanoseconds: JAX leaves it out.
TIME = b"\x48"


class Jax:
    def __init__(self, agent):
        self.agent = agent
        self.ready = False

    def locked(self):
        """Whether JAX is at work on its devices: it takes locks that no thread may take twice, and a look by the
        clock comes in the program's own thread, between any two of its instructions."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        locks = (getattr(bridge, name, None) for name in ("_backend_lock", "_plugin_lock"))
        return any(lock is not None and lock.locked() for lock in locks)

    def tick(self):
        """Profiles begin once the program itself has used a device: before, they would start one."""
        if self.ready or self.agent.torch.module is not None or not initialized():
            return
        self.ready = True
        self.agent.heap.untrace()  # it slows down all that is traced and compiled
        if not self.agent.step:
            self.agent.begin_anew()
            self.agent.drop_ticks()

    def boundary(self, step):
        self.tick()

    def dump(self):
        """The bytes of a snapshot file."""
        from gzip import compress
        from ._counters import unsigned
        return sys.modules["jax"].profiler.device_memory_profile() + compress(TIME + unsigned(int(self.agent.now() * 1e6) * 1000))


def initialized():
    """Whether the program has JAX, and JAX a device."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None)) and hasattr(sys.modules.get("jax"), "profiler")  # else it is being imported
