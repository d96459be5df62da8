"""The process's own heap: what the system and malloc say of it, and what Python allocates, by line.

It is traced in windows: of a program without tensors at once, of one that uses PyTorch once its heap has kept growing by
more than tensors do. For good it is traced only where that is asked for, without PyTorch or to be exact at each so many steps.
"""

import _tracemalloc
import gc
import os
import sys
import time

from . import _names, _room
from ._budget import Budget
from ._free import ALL_FREE, free_tuples
from ._native import Native
from ._own import held
from ._traces import DEPTH, TORCH_DEPTH, by_stack, is_ours
from ._windows import ENOUGH, VAIN, Windows

# Growth of the heap beyond that of tensors which makes tracing begin, in so many looks in a row, so many
# steps apart: so many bytes of malloc or blocks of Python a step, or in all of a line that would be told, and this
# share of what tensors grow (their graphs and handles take some). A run's losses and the like are a few blocks a step.
BYTES, ALL_BYTES, BYTES_SHARE = 2 << 10, 64 << 10, 0.5
BLOCKS, ALL_BLOCKS, FEW_BLOCKS, BLOCKS_SHARE = 50, 1000, 8, 4
LOOKS, APART, WARM = 5, 8, 16
# So many looks in a row have the nodes of autograd's graph be counted.
AGAIN = 2
# What grows while Python makes fewer blocks that stay, in so many steps one, is not Python's.
NATIVE = 4
# What collections may cost that tell cycles of garbage from what stays: so many seconds, and this share of the time. The first
# is taken to cost so many seconds a block of Python's allocator. Where they would cost more, what has risen in so many
# times as many looks is taken to stay.
COLLECT, COLLECT_SHARE, A_BLOCK, LONG = 0.1, 0.01, 1e-7, 2
# Seconds between two questions for what is left to the process: it takes a millisecond where files are slow.
ROOM_APART = 1.0
# What snapshots may then cost on top of their budget, in seconds: there is something to find.
CREDIT = 0.2
# What a line must hold to be told: so many bytes for each step since tracing began. Every run
# keeps its losses as numbers.
A_STEP, AT_LEAST, MOST_LINES = 200, 4 << 10, 400
# Beside PyTorch, objects so small, and not more of them a step, are handles of tensors, which are
# recorded themselves; the agent makes more of them.
HANDLE, HANDLES = 100, 8
# Where PyTorch is too old for its tensors to be recorded, a handle of at least so many bytes each second
# step is all that tells of them; a number takes less.
UNSEEN = 72
# So are objects of a line at which recorded tensors live, up to so many bytes each and so many a tensor:
# nodes of the graph, tuples, and their places in a list. The tensors tell that line already.
BESIDE, BESIDES = 200, 4


class Heap:
    def __init__(self, agent):
        self.agent = agent
        self.page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self.mallinfo = None
        self.room, self.asked = None, -ROOM_APART  # what the process may yet take, and when that was asked
        self.tracing = False
        self.since = 0  # the step at which tracing began
        self.wanted = agent.settings.get("python_heap", "auto")
        self.last, self.rising = None, 0
        self.low = None  # what there was when it began to rise
        self.beside = False  # whether PyTorch or JAX is at work; one that a library imports may never be
        self.rises = False  # by more than tensors and garbage do: it is to be traced
        self.collections, self.collection = Budget(agent, COLLECT, COLLECT_SHARE), None  # and the seconds that the last one took
        self.told = {}  # stacks that were told once stay, with their first bytes
        self.names = _names.Names()
        self.free = 0  # tuples, when they were last counted
        self.rows = {}  # stacks of the last snapshot, with their bytes and blocks
        self.windows = Windows(agent, self.malloc)
        self.native = Native(agent, self.malloc, self.pace)
        self.outside = False  # whether the heap grows, and Python has little that is new
        self.levels = []  # the agent's time and bytes in use beyond tensors: at the first snapshot and at the last

    def start(self):
        if self.wanted == "on" and not self.windowed():
            self.trace()

    def stop(self):
        # Tracing that the program asked for, or uses, is its own.
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
        self.agent.torch.recalibrate()  # from now on all that the agent does costs more

    def give_way(self):
        self.wanted = "off"
        self.agent.blind("python", "the program uses tracemalloc itself, so its Python heap is not recorded")

    def prepared(self):
        """What imports have made stays, and only costs: to read it takes longer than what the program makes."""
        if self.tracing:
            _tracemalloc.clear_traces()
        self.begin_anew()

    def begin_anew(self):
        self.windows.stop()
        self.windows = Windows(self.agent, self.malloc)
        self.told, self.rows = {}, {}
        self.forget_native()

    def forget_native(self):
        """Other work begins."""
        self.native.end()
        self.native, self.outside, self.levels = Native(self.agent, self.malloc, self.pace), False, []

    def pace(self):
        """By how many bytes a second malloc's memory grows beyond tensors."""
        (began, low), (now, high) = self.levels
        return max(0, high - low) / max(1e-3, now - began)

    def torch_or_jax(self):
        """Whether either is imported; who counts all objects beside them is to ask for tracing at each so many steps."""
        return not {"torch", "jax"}.isdisjoint(sys.modules)

    def windowed(self):
        """Whether the heap is traced in windows."""
        if self.tracing or self.wanted == "off":
            return False
        if self.wanted == "on":
            return self.torch_or_jax() and not self.agent.fixed
        torch = self.agent.torch
        if self.agent.number and not self.agent.step:
            return True  # what a loader's worker makes are objects and arrays
        self.beside = self.beside or "jax" in sys.modules or "torch" in sys.modules and (self.agent.step > 0 or torch.seen())
        return self.rises if self.beside else True

    def boundary(self, step):
        if self.windowed():
            self.windows.boundary(step)
        self.look_outside()

    def look_outside(self):
        """Has the line be looked for at which malloc's memory grows, if no line of Python's explains it."""
        if self.outside or self.windows.outside():
            self.native.open()
        else:
            self.native.overdue()

    def ahead(self):
        """How many of the next steps need no look at their end."""
        return 0 if self.windowed() and (self.windows.began is not None or self.windows.wanted) else sys.maxsize

    def look(self, in_use):
        """Has the heap be traced when it grows by more than tensors do."""
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
        # What comes once in many steps rises in few looks, and stays in all.
        if rises or now[1] - now[3] < self.last[1] - self.last[3] or self.rising and not risen(now, self.low)[0]:
            self.rising = self.rising + 1 if rises else 0
        self.last = now
        if self.rising < LOOKS or self.wanted != "auto" or agent.holders.graphs.grow():
            return  # a graph of autograd's that is known to grow explains it
        steps, made = now[0] - self.low[0], now[2] - self.low[2]
        if NATIVE * made < steps:
            self.outside = True
            return
        if not agent.own.collects or agent.ticker.acts() or self.rising >= LONG * LOOKS:
            self.begin_to_trace()
        elif self.garbage_goes():
            self.collect(now)

    def garbage_goes(self):
        """Has garbage go, unless the program would not have it, or that costs too much; reports whether."""
        own = self.agent.own
        if not own.collects or self.agent.ticker.acts() or not self.collections.affords(self.collection or A_BLOCK * sys.getallocatedblocks()):
            return False
        begun = time.thread_time()
        gc.collect()
        self.collection = time.thread_time() - begun
        self.collections.spent += self.collection
        own.entry = own.now()  # what went is the program's
        return True

    def collect(self, now):
        """Sees whether the heap has grown by more than garbage, which has just gone."""
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
        """PyTorch or JAX comes: what the clock began, the growth of the heap will decide. To trace what PyTorch imports
        takes long, and to read it again at each snapshot longer."""
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
            meters["mapped"] = space  # which includes malloc's, where that gives no figures
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
        """Blocks of Python's own allocator, less the free tuples that it keeps. To count those takes milliseconds where they are
        all that it can keep: then the agent's own work, after which it is asked again, changes next to nothing."""
        blocks = sys.getallocatedblocks()
        if not self.windowed():
            return blocks
        if not again or self.free < ALL_FREE:
            begun = time.thread_time()
            self.free = free_tuples()  # which makes more
            self.agent.spent += time.thread_time() - begun
        return blocks - self.free

    def malloc(self):
        """Bytes of glibc's heap in use, free, and mapped one by one; None where malloc is another, which has no figures."""
        if self.mallinfo is None:
            self.mallinfo = mallinfo() or False
        return self.mallinfo() if self.mallinfo else None

    def in_use(self, heap):
        """Bytes of malloc that are in use, without the agent's. Where it gives no figures those of tensors, beyond which blocks alone grow."""
        return held(heap) - self.agent.own.bytes if heap else self.agent.torch.bytes

    def growing(self):
        """Stacks that hold more than when they were first told, with their blocks."""
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
        """Whether objects of a line are as handles of recorded tensors are."""
        torch = self.agent.torch.module
        return torch and size <= HANDLE * count and (count < HANDLES * steps or stack[0][0].startswith(os.path.dirname(torch.__file__)))

    def tensors(self, size, count, stack, tensors):
        """Whether objects of a line, which has not been told, are what so many tensors there need."""
        return stack not in self.told and size <= BESIDE * count and count <= BESIDES * tensors[stack[0]]

    def window_lines(self, snapshot):
        """Tells what has grown, as far as windows saw it."""
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
            # One row for all of a line: a count and the bytes together.
            snapshot.add(d, 0, size, n, -1, count)
        self.names.forget()


def risen(now, before):
    """Whether the heap has grown by more than tensors do, and by how many blocks; of steps, bytes, blocks, and tensors'
    bytes and number."""
    steps, heap, blocks, tensor_bytes, tensors = (a - b for a, b in zip(now, before))
    # Recorded tensors go when a step without recording makes them anew; the heap tells what stays.
    tensor_bytes, tensors = max(0, tensor_bytes), max(0, tensors)
    return (heap - tensor_bytes >= min(BYTES * steps, max(ALL_BYTES, A_STEP * steps)) + BYTES_SHARE * tensor_bytes
            or blocks >= min(BLOCKS * steps, max(ALL_BLOCKS, FEW_BLOCKS * steps)) + BLOCKS_SHARE * tensors), blocks


class Finder:
    """Ends a window before the program has tracemalloc, which would take it for its own."""

    def __init__(self, agent):
        self.agent = agent

    def find_spec(self, name, path=None, target=None):
        if name == "tracemalloc":
            self.agent.heap.windows.stop()
        return None


def highest():
    """The most resident memory that this process ever had, 0 where that is not known; getrusage counts that of the program before an
    exec, too."""
    try:
        with open("/proc/self/status", "rb") as f:
            for line in f:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass  # no Linux
    return 0


def mallinfo(libc=None):
    """A function that returns what glibc's malloc has in use, free, and mapped one by one; None where malloc is another."""
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
    """A function that returns the numbers of read, which have 32 bits as those of glibc before 2.33, with more. They may change
    by 2 GiB between two calls; what was lost before the first is not known."""
    last = list(read())

    def whole():
        for i, n in enumerate(read()):
            last[i] += (n - last[i] + (1 << 31)) % (1 << 32) - (1 << 31)
        return tuple(last)

    return whole
