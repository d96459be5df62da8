"""Records the process's own heap: the figures of the system and of malloc, and what Python allocates, by line.

The heap is traced in windows. Without tensors they begin at once. With PyTorch they begin once the heap has kept growing by more than
tensors do. The heap is traced all the time only on request (--python-heap on), and with PyTorch only together with --every N.
"""

import _tracemalloc
import gc
import sys

from . import _names, _room
from ._budget import Budget
from ._free import ALL_FREE, free_tuples
from ._native import Native
from ._own import held
from ._real import open, os, time
from ._traces import DEPTH, TORCH_DEPTH, by_stack, is_ours
from ._windows import ENOUGH, VAIN, Windows

# How much the heap must grow beyond tensors before it is traced. BYTES of malloc or BLOCKS of Python a step are enough, and so are
# ALL_BYTES or ALL_BLOCKS in all, if it is at least A_STEP bytes or FEW_BLOCKS a step. A share of the growth of tensors is added, for
# their graphs and handles: BYTES_SHARE of their bytes, BLOCKS_SHARE blocks for each. A run's losses and the like take a few blocks
# a step. LOOKS: how many looks must find it. APART: steps between looks. WARM: the first step with a look.
BYTES, ALL_BYTES, BYTES_SHARE = 2 << 10, 64 << 10, 0.5
BLOCKS, ALL_BLOCKS, FEW_BLOCKS, BLOCKS_SHARE = 50, 1000, 8, 4
LOOKS, APART, WARM = 5, 8, 16
# After so many looks that found growth, walks count the items of containers and the nodes of autograd's graph.
AGAIN = 2
# If fewer than one new block of Python stays in so many steps, the growth is outside Python.
NATIVE = 4
# Garbage collections show whether the growth is only garbage. COLLECT, COLLECT_SHARE: what they may cost, in seconds and as a share of
# the time. A_BLOCK: the seconds assumed for the first, for each block of Python's allocator. LONG: after so many times LOOKS looks that
# found growth, the heap is traced without a collection.
COLLECT, COLLECT_SHARE, A_BLOCK, LONG = 0.1, 0.01, 1e-7, 2
# Seconds between two reads of the memory left to the process. A read takes a millisecond where files are slow.
ROOM_APART = 1.0
# Seconds that snapshots may cost on top of their budget once the heap is traced: there is something to find.
CREDIT = 0.2
# A line is reported if it holds A_STEP bytes for each step since tracing began, or in windows AT_LEAST bytes; at most MOST_LINES
# lines are. Every run holds its losses as numbers.
A_STEP, AT_LEAST, MOST_LINES = 200, 4 << 10, 400
# Beside PyTorch, a line is left out if its objects take at most HANDLE bytes each and are fewer than HANDLES a step: they are handles of
# tensors, which are recorded themselves. The agent makes such handles, too.
HANDLE, HANDLES = 100, 8
# If PyTorch is too old for its tensors to be recorded, only their handles show them. So a line with one object of at least so many
# bytes every second step is reported. A number takes less.
UNSEEN = 72
# A line at which recorded tensors live is left out, too, if its objects take at most BESIDE bytes each and are at most BESIDES a tensor:
# nodes of the graph, tuples, their places in a list. The tensors already report that line.
BESIDE, BESIDES = 200, 4

# Modules that make subinterpreters. With a lock of their own, these crash under tracemalloc, also in Python 3.14, as they end.
INTERPRETERS = "_interpreters", "_xxsubinterpreters"
CRASHES = "the program has subinterpreters, which may crash under tracemalloc"


class Heap:
    def __init__(self, agent):
        self.agent = agent
        self.page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self.mallinfo = None
        self.room, self.asked = None, -ROOM_APART  # bytes that the process may still take, and when they were read
        self.tracing = False
        self.since = 0  # the step at which tracing began
        self.wanted = agent.settings.get("python_heap", "auto")
        self.last, self.rising = None, 0
        self.low = None  # what look found when it began to rise
        self.beside = False  # whether the program uses PyTorch or JAX; if only a library imports it, it may never
        self.rises = False  # by more than tensors and garbage do: it is traced in windows
        self.collections, self.collection = Budget(agent, COLLECT, COLLECT_SHARE), None  # their budget, and the seconds of the last one
        self.told = {}  # stacks that were reported, with their first bytes; they stay reported
        self.names = _names.Names()
        self.free = 0  # free tuples at the last count
        self.rows = {}  # stacks in the last snapshot, with their bytes and blocks
        self.windows = Windows(agent, self.malloc)
        self.native = Native(agent, self.malloc, self.pace)
        self.outside = False  # whether the heap grows although Python allocates little
        self.levels = []  # at the first and the last snapshot: the agent's time, and bytes in use beyond tensors

    def start(self):
        if self.wanted == "on" and not self.windowed():
            self.trace()

    def stop(self):
        # A program that has imported tracemalloc may use it, so tracing goes on.
        if self.tracing:
            if "tracemalloc" not in sys.modules:
                _tracemalloc.stop()
            self.tracing = False
        self.windows.stop()
        self.native.end()

    def finish(self):
        self.windows.stop()
        if self.tracing:
            self.agent.note("Python's heap was traced during the whole run (--python-heap on); Python code may have been many times slower")
        if self.rises and self.wanted == "auto" and self.windows.number < ENOUGH:
            self.agent.note("Python's heap grows, but the lines are unknown: the run was too short to trace it at low cost%s; record longer, or with --python-heap on" % (
                ", as steps take %.1f times as long" % self.windows.slow if self.windows.slow else ""))
        if self.windowed() and self.windows.silent():
            self.agent.blind("python", "Python's heap has grown, but the run was too short to find the lines")

    def about(self):
        return {"python_heap_since": self.since if self.tracing else None, "python_heap_windows": self.windows.number}

    def trace(self):
        if _tracemalloc.is_tracing():
            self.give_way()
            return
        _tracemalloc.start(TORCH_DEPTH if self.agent.torch.module else DEPTH)
        self.tracing, self.since = True, self.agent.step
        self.agent.torch.recalibrate()  # from now on all work of the agent takes longer

    def give_way(self, why="the program uses tracemalloc itself"):
        self.wanted = "off"
        self.agent.blind("python", why + ", so its Python heap is not recorded")

    def prepared(self):
        """The imports have ended. What they allocated stays, and reading it takes longer than reading what the program allocates: so it is dropped."""
        if self.tracing:
            _tracemalloc.clear_traces()
        self.begin_anew()

    def begin_anew(self):
        self.windows.stop()
        self.windows = Windows(self.agent, self.malloc)
        self.told, self.rows = {}, {}
        self.forget_native()

    def forget_native(self):
        """The program begins other work."""
        self.native.end()
        self.native, self.outside, self.levels = Native(self.agent, self.malloc, self.pace), False, []

    def pace(self):
        """Growth of malloc's memory beyond tensors, in bytes a second."""
        (began, low), (now, high) = self.levels
        return max(0, high - low) / max(1e-3, now - began)

    def torch_or_jax(self):
        """Whether PyTorch or JAX is imported. Beside them every object is counted only with --every N."""
        return not {"torch", "jax"}.isdisjoint(sys.modules)

    def windowed(self):
        """Whether the heap is traced in windows."""
        if self.tracing or self.wanted == "off":
            return False
        if self.wanted == "on":
            return self.torch_or_jax() and not self.agent.fixed
        torch = self.agent.torch
        if self.agent.number and not self.agent.step:
            return True  # a loader's worker allocates objects and arrays
        self.beside = self.beside or "jax" in sys.modules or "torch" in sys.modules and (self.agent.step > 0 or torch.seen())
        return self.rises if self.beside else True

    def boundary(self, step):
        if self.windowed():
            self.windows.boundary(step)
        self.look_outside()

    def look_outside(self):
        """Searches for the line at which malloc's memory grows, if no line of Python's heap explains that growth."""
        if self.outside or self.windows.outside():
            self.native.open()
        else:
            self.native.overdue()

    def ahead(self):
        """How many of the next steps need no look at their end."""
        return 0 if self.windowed() and (self.windows.began is not None or self.windows.wanted) else sys.maxsize

    def look(self, in_use):
        """Begins to trace the heap once it grows by more than tensors do."""
        agent = self.agent
        if not agent.stepping or agent.step < WARM:
            return
        now = agent.step, in_use, agent.own.entry[0] - agent.own.blocks, agent.torch.bytes, agent.torch.count
        if self.last is None:
            self.last = now
        if now[0] - self.last[0] < APART:
            return
        rises, blocks = risen(now, self.last)
        if rises and not self.rising:
            self.low = self.last
        # What is allocated once in many steps rises in few looks, but it is still there in all later ones.
        if rises or now[1] - now[3] < self.last[1] - self.last[3] or self.rising and not risen(now, self.low)[0]:
            self.rising = self.rising + 1 if rises else 0
        self.last = now
        if self.rising < LOOKS or self.wanted != "auto" or agent.holders.graphs.grow():
            return  # a graph of autograd that is known to grow explains it
        steps, made = now[0] - self.low[0], now[2] - self.low[2]
        if NATIVE * made < steps:
            self.outside = True
            return
        if not agent.own.collects or agent.ticker.acts() or self.rising >= LONG * LOOKS:
            self.begin_to_trace()
        elif self.garbage_goes():
            self.collect(now)

    def garbage_goes(self):
        """Collects garbage and returns True; False if the program has turned the collector off, in our thread, or if it would cost too much."""
        own = self.agent.own
        if not own.collects or self.agent.ticker.acts() or not self.collections.affords(self.collection or A_BLOCK * sys.getallocatedblocks()):
            return False
        begun = time.thread_time()
        gc.collect()
        self.collection = time.thread_time() - begun
        self.collections.spent += self.collection
        own.entry = own.now()  # what was freed is the program's
        return True

    def collect(self, now):
        """Begins to trace if the heap has grown by more than the garbage that was just collected."""
        blocks, heap = self.agent.own.entry
        after = now[0], self.in_use(heap), blocks - self.agent.own.blocks, *now[3:]
        self.last = after
        if risen(after, self.low)[0]:
            self.begin_to_trace()
        else:
            self.rising = 0

    def begin_to_trace(self):
        self.rises = True
        self.agent.spent -= CREDIT

    def outgrows(self):
        """Whether the heap keeps growing by more than tensors and known lines do."""
        return self.rising >= AGAIN or self.windows.outgrows()

    def untrace(self):
        """PyTorch or JAX is about to be imported. Windows that the clock opened end. From now on the heap is traced only if it grows. Tracing
        what PyTorch imports takes long, and reading it again at each snapshot takes longer."""
        self.stop()
        self.begin_anew()

    def tick(self):
        pass

    def fill(self, snapshot):
        meters, limit, space = {}, None, 0
        try:
            with open("/proc/self/statm", "rb") as f:
                pages = [int(n) for n in f.read().split()]
            meters["driver"], space = pages[1] * self.page, pages[5] * self.page
            if time.monotonic() - self.asked >= ROOM_APART:
                self.asked, self.room = time.monotonic(), _room.room()
            limit = None if self.room is None else meters["driver"] + self.room
            meters["peak"] = highest()
        except OSError:
            pass  # no Linux
        heap = self.windows.figures or self.agent.own.entry[1]
        if heap:
            own = self.agent.own.bytes + (_tracemalloc.get_tracemalloc_memory() if self.tracing else 0)
            meters["requested"] = meters["allocated"] = meters["active"] = held(heap) - own
            meters["reserved"] = held(heap) + heap[1] - own
            meters["mapped"] = max(0, space - held(heap) - heap[1])
        elif space:
            meters["mapped"] = space  # includes malloc's memory, which has no figures
        if meters:
            snapshot.device("host", "process", limit=limit, **meters)
        if not self.windowed() and not self.tracing:
            self.look(self.in_use(heap))
        self.native.fill(snapshot)
        level = self.agent.elapsed(), self.in_use(heap) - self.agent.torch.bytes
        self.levels = [*self.levels[:1], level] if self.levels else [level, level]
        if not self.agent.own.collects:
            snapshot.notes.append("Python's collector of cycles is off (gc.disable): objects that refer to each other are never released")
        if self.mallinfo is False and not self.tracing and self.wanted != "off":
            snapshot.notes.append("this system's malloc gives no figures, so the sizes of Python's objects above 512 B are not counted, and rates of such leaks are too low; --python-heap on%s counts them" % (
                " --every N" if self.torch_or_jax() else ""))
        if self.tracing:
            self.lines(snapshot)
        elif self.windowed():
            self.window_lines(snapshot)

    def blocks(self, again=False):
        """Blocks of Python's own allocator, without the free tuples that Python caches. Counting these takes milliseconds if the cache is
        full. Then they are not counted again after the agent's work, which changes their number by next to nothing."""
        blocks = sys.getallocatedblocks()
        if not self.windowed():
            return blocks
        if not again or self.free < ALL_FREE:
            begun = time.thread_time()
            self.free = free_tuples()  # their own count makes more of them
            self.agent.spent += time.thread_time() - begun
        return blocks - self.free

    def malloc(self):
        """Bytes of glibc's heap: in use, free, and in blocks with a mapping of their own. None for another malloc, which has no figures."""
        if self.mallinfo is None:
            self.mallinfo = mallinfo() or False
        return self.mallinfo() if self.mallinfo else None

    def in_use(self, heap):
        """Bytes of malloc in use, without the agent's. Without malloc's figures those of tensors, so that only blocks can grow beyond them."""
        return held(heap) - self.agent.own.bytes if heap else self.agent.torch.bytes

    def growing(self):
        """Stacks that hold over 1.5 times the bytes they held when first reported, with their blocks."""
        return {s: count for s, (size, count) in self.rows.items() if size > 1.5 * self.told[s]}

    def lines(self, snapshot):
        steps = self.agent.step - self.since
        floor = max(AT_LEAST if steps == 0 else 1, A_STEP * steps)
        rows, tensors = [], self.agent.torch.lines()
        unseen = self.agent.torch.module and self.agent.torch.mode is None
        for stack, *sizes in by_stack(_tracemalloc._get_traces()):
            size, count = sum(map(sum, sizes)), sum(map(len, sizes))
            handles = unseen and steps and UNSEEN * count <= size <= HANDLE * count and 2 * count >= steps
            if size < floor and not handles and stack not in self.told or is_ours(stack):
                continue
            if not unseen and self.handles(size, count, stack, steps) or self.tensors(size, count, stack, tensors):
                continue
            rows.append((size, count, stack))
        self.tell(snapshot, rows)
        snapshot.notes.append("Python's heap is traced since step %d; lines that hold less than %d bytes a step are left out" % (self.since, A_STEP))

    def handles(self, size, count, stack, steps):
        """Whether the objects of a line look like handles of recorded tensors."""
        torch = self.agent.torch.module
        return torch and size <= HANDLE * count and (count < HANDLES * steps or stack[0][0].startswith(os.path.dirname(torch.__file__)))

    def tensors(self, size, count, stack, tensors):
        """Whether the objects of a line that was not reported are what the recorded tensors of that line need."""
        return stack not in self.told and size <= BESIDE * count and count <= BESIDES * tensors[stack[0]]

    def window_lines(self, snapshot):
        """Adds the lines that have grown, as far as windows saw it."""
        windows, agent = self.windows, self.agent
        windows.settle()
        if self.rises and self.wanted == "auto" and windows.vain >= VAIN:
            self.wanted, self.outside = "off", True
            agent.note("Python's heap was traced in %d windows up to step %d, and no line of it grew: the growth is outside Python" % (windows.number, agent.step))
            return
        rows = [r for r in windows.grown() if r[0] >= AT_LEAST or r[2] in self.told]
        if agent.torch.module:
            tensors, steps = agent.torch.lines(), agent.step or sum(agent.batches or ())
            rows = [r for r in rows if r[2] and not self.handles(*r, steps) and not self.tensors(*r, tensors)]
        self.tell(snapshot, rows)
        if windows.number:
            snapshot.notes.append("Python's heap is traced for %.0f %% of the time so far; its growth is divided among lines as seen then" % (
                100 * windows.spent / max(0.001, windows.elapsed())))

    def tell(self, snapshot, rows):
        """Adds lines: their bytes, blocks and stacks."""
        rows.sort(key=lambda r: r[0], reverse=True)
        del rows[MOST_LINES:]
        self.rows = {stack: (size, count) for size, count, stack in rows}
        d = snapshot.device("python", "Python heap", allocated=sum(r[0] for r in rows))
        for size, count, stack in rows:
            self.told.setdefault(stack, size)
            n = snapshot.stacks.add(stack, lambda: [(self.names.of(f, line), f, line) for f, line in stack])
            # One row for a whole line: its number of blocks, and their bytes together.
            snapshot.add(d, 0, size, n, -1, count)
        self.names.forget()


def risen(now, before):
    """Whether the heap has grown by more than tensors do, and by how many blocks. now and before: step, bytes, blocks, and the bytes and
    number of tensors."""
    steps, heap, blocks, tensor_bytes, tensors = (a - b for a, b in zip(now, before))
    # The recorded tensors become fewer when a step that is not recorded replaces them. The heap shows what stays.
    tensor_bytes, tensors = max(0, tensor_bytes), max(0, tensors)
    return (heap - tensor_bytes >= min(BYTES * steps, max(ALL_BYTES, A_STEP * steps)) + BYTES_SHARE * tensor_bytes
            or blocks >= min(BLOCKS * steps, max(ALL_BLOCKS, FEW_BLOCKS * steps)) + BLOCKS_SHARE * tensors), blocks


class Finder:
    """Ends a window before the program imports tracemalloc, which would take our tracing for the program's, and all tracing before it can
    make subinterpreters."""

    def __init__(self, agent):
        self.agent = agent

    def find_spec(self, name, path=None, target=None):
        heap = self.agent.heap
        if name == "tracemalloc":
            heap.windows.stop()
        elif name in INTERPRETERS and heap.wanted != "off":
            heap.stop()
            heap.give_way(CRASHES)
        return None


def highest():
    """The most resident memory that this process ever had, in bytes; 0 if unknown. getrusage also counts the program before an exec."""
    try:
        with open("/proc/self/status", "rb") as f:
            for line in f:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass  # no Linux
    return 0


def mallinfo(libc=None):
    """Returns a function that returns what glibc's malloc has: bytes in use, free, and mapped one by one. None for another malloc."""
    try:
        import ctypes

        libc = libc or ctypes.CDLL(None)
        wide = hasattr(libc, "mallinfo2")

        class Info(ctypes.Structure):
            _fields_ = [(n, ctypes.c_size_t if wide else ctypes.c_uint) for n in (
                "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

        f = libc.mallinfo2 if wide else libc.mallinfo
        f.restype = Info
    except Exception:
        return None

    def read():
        m = f()
        return m.uordblks, m.fordblks, m.hblkhd

    return read if wide else unwrapped(read)


def unwrapped(read):
    """Returns a function that returns the numbers of read beyond 32 bits: before glibc 2.33 they have only 32. They may change by up to
    2 GiB between two calls. What overflowed before the first call is not known."""
    last = list(read())

    def whole():
        for i, n in enumerate(read()):
            last[i] += (n - last[i] + (1 << 31)) % (1 << 32) - (1 << 31)
        return tuple(last)

    return whole
