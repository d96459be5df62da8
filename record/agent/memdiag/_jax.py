"""JAX: its own profile of device memory, by the stack that made each live array, in pprof's format.

JAX has no optimizer that could tell steps: snapshots are by the clock, or where the program marks
its steps.
"""

import sys


class Jax:
    def __init__(self, agent):
        self.agent = agent
        self.ready = False

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
        return sys.modules["jax"].profiler.device_memory_profile()


def initialized():
    """Whether the program has JAX, and JAX a device."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not hasattr(sys.modules.get("jax"), "profiler"):
        return False  # or is being imported
    told = getattr(bridge, "backends_are_initialized", None)
    return bool(told() if told else getattr(bridge, "_backends", None))
