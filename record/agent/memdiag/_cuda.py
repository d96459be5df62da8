"""PyTorch on CUDA: the allocator's own history and snapshots.

Recording begins at the first step after the program itself has used CUDA, never before: it would
make a context in loader workers and before forks.
"""

import os

# Events that are kept, and Python frames only: C++ stacks take minutes to resolve at a dump.
EVENTS = 100_000


class Cuda:
    def __init__(self, agent, torch):
        self.agent, self.torch = agent, torch
        self.recording = False

    def boundary(self):
        if self.recording or not self.torch.cuda.is_initialized():
            return
        self.recording = True
        memory = self.torch.cuda.memory
        memory._record_memory_history("all", context="alloc", stacks="python", max_entries=EVENTS)
        self.agent.cuda = self

        def out_of_memory(device, alloc, total, free):
            self.agent.guarded("out of memory", self.oom)

        self.torch._C._cuda_attach_out_of_memory_observer(out_of_memory)

    def fill(self, snapshot):
        pass  # the dump is a file of its own
