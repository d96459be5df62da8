"""PyTorch on CUDA: the allocator's own history and snapshots, in PyTorch's own format.

Recording begins at the first step after the program itself has used CUDA, never before: it would
make a context in loader workers and before forks.
"""

import pickle

# Events that are kept. Stacks are Python's only: those of C++ take minutes to resolve at a dump.
EVENTS = 100_000


class Cuda:
    def __init__(self, agent, torch):
        self.agent, self.torch = agent, torch
        self.recording = self.refused = False

    def boundary(self):
        """Begins to record once the program has used CUDA; True from then on."""
        if not self.recording and not self.refused and self.torch.cuda.is_initialized():
            try:
                self.torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=EVENTS)
            except Exception as e:  # of a PyTorch whose function is another
                self.refused = True
                self.agent.note("PyTorch %s does not record what CUDA allocates: %s: %s" % (self.torch.__version__, type(e).__name__, str(e)[:200]))
                return False
            self.recording = True
            self.torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory)
        return self.recording

    def out_of_memory(self, device, allocation, total, free):
        """Called before the exception is raised."""
        self.agent.guarded("out of memory", self.agent.take, self.agent.step + 1)

    def dump(self, step, rank):
        """The bytes of a snapshot file."""
        snapshot = self.torch.cuda.memory._snapshot()
        header = {"step": step}
        if rank is not None:
            header["rank"] = rank
        return pickle.dumps({"memdiag": header, **snapshot}, protocol=4)
