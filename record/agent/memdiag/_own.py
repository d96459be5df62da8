"""Counts what the agent itself has allocated on the process's heap, so that it is not reported as the program's growth."""

import gc
import math
from _thread import get_ident

from ._frames import current
from ._real import open, time

# Sizes of bytes objects that malloc allocates and that glibc caches when they are freed; EACH: how many it caches of each size.
SMALLEST, LARGEST, EACH = 480, 1008, 7
# Processor seconds that other threads take at most if they only wait, as those of a pool: they check whether they may go on.
IDLE = 2e-4
# Seconds after which the kernel has counted the time of threads on other processors: it does so at its ticks.
TICKS = 0.01


class Own:
    """A context manager that counts what the agent's own work allocates: blocks of Python's allocator, and bytes of malloc. Python's
    collector is off meanwhile, since what it frees is the program's. If threads of the program run meanwhile, nothing is counted: it may be
    theirs. If they stay in a call of C that does work, only Python's blocks are counted."""

    def __init__(self, agent):
        self.agent = agent
        self.blocks = self.bytes = 0
        self.depth = 0
        self.entry = None  # when the agent's work began: blocks, and malloc's figures
        self.others = None  # where other threads were then, as threads returns it
        self.ran = self.began = 0.0  # processor seconds of all other threads then, also those of C; and when the work began
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
            self.agent.torch.sweep()  # the records of tensors that are freed were allocated while the program ran
            self.entry, self.ran, self.began = self.now(), elsewhere(), time.perf_counter()
        except BaseException:
            self.leave()  # the program is close to the recursion limit
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
        self.others = None  # else the locals of their frames would outlive them
        if self.collects:
            gc.enable()

    def threads(self):
        """The frame and instruction of each other thread of the program. A thread that is there again later has not run."""
        ours = get_ident(), self.agent.ticker.thread
        return {thread: (frame, frame.f_lasti) for thread, frame in current().items() if thread not in ours}

    def now(self):
        return self.agent.heap.blocks(), self.agent.heap.malloc()


def elsewhere():
    """Processor seconds of the process's other threads."""
    return time.process_time() - time.thread_time()


def fill_caches():
    """Fills glibc's cache of freed blocks for this thread. Cached blocks count as in use. Otherwise the agent's work would fill the cache
    bit by bit, and the process would seem to grow."""
    for size in range(SMALLEST, LARGEST, 16):
        [bytes(size) for _ in range(EACH)]


def held(heap):
    """Bytes of malloc in use, by its figures; 0 without figures."""
    return heap[0] + heap[2] if heap else 0


def waited():
    """Seconds that the main thread has waited for a processor; infinity if the system does not report them."""
    try:
        with open("/proc/self/schedstat", "rb") as f:
            return int(f.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return math.inf
