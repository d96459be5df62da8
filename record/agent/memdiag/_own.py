"""What the agent itself has taken of the process's heap, so that it is not said to be the program's growth."""

import gc
import math
import sys
import time
from _thread import get_ident

# The bytes objects that malloc makes and glibc caches when they are freed, and how many of each size.
SMALLEST, LARGEST, EACH = 480, 1008, 7
# What threads take at most that only wait, as those of a pool: to ask whether they may go on.
IDLE = 2e-4
# Seconds after which the kernel has counted what threads on other processors took: it does so at its ticks.
TICKS = 0.01


class Own:
    """Counts what comes and goes while the agent is at work: blocks of Python's allocator and bytes of malloc's. A
    context. Python's collector rests meanwhile: what it frees is the program's. Where the program's threads run meanwhile
    nothing is counted, since it may be theirs; where they stay in a call of C that works, Python's blocks alone."""

    def __init__(self, agent):
        self.agent = agent
        self.blocks = self.bytes = 0
        self.depth = 0
        self.entry = None  # what there was when the agent's work began: blocks, and malloc's figures
        self.others = None  # where other threads were then
        self.ran = self.began = 0.0  # for how long they had run, and those of C; and when the work began
        self.collects = True  # whether the program has the collector on

    def __enter__(self):
        self.depth += 1
        if self.depth > 1:
            return
        self.collects = gc.isenabled()
        try:
            self.agent.heap.native.rest()
            self.others = self.threads()
            gc.disable()
            self.agent.torch.sweep()  # what is kept of tensors that are gone was made while the program ran
            self.entry, self.ran, self.began = self.now(), elsewhere(), time.perf_counter()
        except BaseException:
            self.leave()  # the program is nearly as deep as it may go
            raise

    def __exit__(self, *_):
        if self.depth > 1:
            self.depth -= 1
            return
        try:
            if self.others == self.threads():
                blocks, heap = self.agent.heap.blocks(again=True), self.agent.heap.malloc()
                self.blocks += blocks - self.entry[0]
                if not self.others or time.perf_counter() - self.began > TICKS and elsewhere() - self.ran < IDLE:
                    self.bytes += held(heap) - held(self.entry[1])
            self.agent.heap.native.resume()
        finally:
            self.leave()

    def leave(self):
        self.depth = 0
        self.others = None  # whose frames would keep what their ends let go of
        if self.collects:
            gc.enable()

    def threads(self):
        """Where the program's other threads are: those that stay there have not run."""
        ours = get_ident(), self.agent.ticker.thread
        return {thread: (frame, frame.f_lasti) for thread, frame in sys._current_frames().items() if thread not in ours}

    def now(self):
        return self.agent.heap.blocks(), self.agent.heap.malloc()


def elsewhere():
    """Seconds of the processor that the process's other threads have taken."""
    return time.process_time() - time.thread_time()


def fill_caches():
    """Fills the cache that glibc has for this thread, of freed blocks which count as in use: the agent's work, rather than the
    program's, would fill it bit by bit, and the process would be said to grow."""
    for size in range(SMALLEST, LARGEST, 16):
        [bytes(size) for _ in range(EACH)]


def held(heap):
    """Bytes of malloc that are in use, by its figures; 0 where there are none."""
    return heap[0] + heap[2] if heap else 0


def waited():
    """Seconds for which the main thread has waited for a processor; without end where the system does not tell."""
    try:
        with open("/proc/self/schedstat", "rb") as f:
            return int(f.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return math.inf
