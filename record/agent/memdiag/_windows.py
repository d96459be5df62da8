"""Finds the lines of Python's heap that grow, by tracing it for short periods: windows.

tracemalloc makes Python up to ten times slower, so it runs for a share of the time only. Two sources are combined:

* The allocators count how much the whole heap has grown, at no cost: Python's allocator its blocks, and malloc the
  bytes of larger objects.
* A window shows which lines grow: those of which each later look finds more than any earlier look.

The growth of the heap is divided among these lines.
"""

import _tracemalloc
import collections
import marshal
import math
import sys

from . import _lost
from ._clock import work
from ._frames import current
from ._free import free
from ._own import held, waited
from ._real import time
from ._traces import DEEP, DEPTH, TORCH_DEPTH, by_stack, changes, cut_off, leave_out, read, shortened

# Whether tracemalloc may be ended while other threads allocate.
MENDED = sys.version_info >= (3, 13, 2) or (3, 12, 9) <= sys.version_info[:3] < (3, 13)
# What windows may cost: seconds at the start, plus a share of the run's time. With steps, only the extra time of the steps counts.
ALLOWANCE, SHARE = 0.15, 0.05
STEPS_ALLOWANCE, STEPS_SHARE = 0.3, 0.03
# GUESS: how many times as long a step is assumed to take in the first window. LITTLE: the least assumed for later windows.
# OVERDRAWN: a window ends if it has cost so many times its limit. HOPELESS: it ends if it will cost so many times its limit.
# VAIN: beside PyTorch, no window follows so many in a row in which no line grew.
GUESS, LITTLE, OVERDRAWN, HOPELESS, VAIN = 6.0, 1.3, 1.5, 2.5, 8
# Threads that run Python in a program with one thread: its own, and the agent's.
OWN = 2
# LOOKS: looks in a window. LASTS: its length in seconds, at most. PART: its length at most, as a part of the steps so far; without an
# optimizer, of the time so far, or half of the time between snapshots. A window is shorter where that would cost too much. SHORTEST and
# LEAST: its length at least, in seconds and as a share of the time so far, since one long window shows more than several short ones.
LOOKS, LASTS, PART, SHORTEST, LEAST = 4, 0.5, 0.25, 0.01, 0.01
# RECENT: the windows that decide which lines grow. ENOUGH: how many there must be. OFTEN: in how many of them a line must have grown.
# A line whose blocks become larger but not more must have grown in half of them, and shrunk in none.
RECENT, ENOUGH, OFTEN = 8, 3, 2
# If a look has at most so many traces, they are kept unread until the window ends. A trace takes some hundred bytes.
UNREAD = 50_000
# If the heap grows so many times as much between windows as its lines do in windows, other lines grow: if a figure is made every
# twenty steps, short windows only see the list of losses. If lines grow so many times as much in windows as the whole heap does,
# they replace older blocks, whose end windows do not see: the items of a full buffer.
FAR = 8
# A line with less than this part of the growth in windows is left out: what a library allocates and frees in each call can be more
# at later looks by chance.
TOLD = 0.01
# The heap has risen if it has so many blocks or bytes more than ever before.
BLOCKS, BYTES = 64, 16 << 10
MUCH = 16  # growth of so many times that must be reported, also without a line
# What fills up has less than this share of its growth in the second half of the time.
LATE = 0.2
QUARTERS = 8  # with fewer snapshots, halves of a run are compared and not quarters
# The heap has fallen if so many snapshots in a row find less. One dip would move growth from lines that stay to lines that
# seem to grow, a little each time.
DIPS = 3


class Windows:
    def __init__(self, agent, malloc):
        self.agent, self.malloc = agent, malloc
        self.depth = None  # frames of a stack; None before the first window
        self.begun = time.monotonic(), waited()
        self.due = None  # the time of the next look; None while no window is wanted
        self.spent, self.pace = 0.0, 1.0  # processor seconds: of all windows, and per second of the last window
        self.began = None  # when the open window began: by the clock, the program's time, the processor time of all threads
        self.apart = 0.0  # seconds between its looks
        self.looks = []  # what each look found, by stack
        self.size = 0.0  # mean size of a block of Python's allocator in the last window
        self.grows = {}  # the lines that grow, as growing returns them
        self.recent = collections.deque(maxlen=RECENT)  # what changes returned for each of the last windows, serialized
        self.spans = collections.deque(maxlen=RECENT)  # the length of each, in steps or seconds
        self.levels = collections.deque(maxlen=RECENT)  # when each ended, whether steps counted then, and the level
        self.lines = {}  # the growth of each stack: blocks and bytes of Python's allocator, blocks and bytes of malloc
        self.level = self.highest = None  # the totals that are divided among lines, and the highest totals
        self.dips = [], []  # totals of the last snapshots that were lower: of blocks, of bytes
        self.untold = (0, 0)  # growth before there were enough windows to know the lines
        self.beyond, self.settled = [0, 0], 0  # growth since then beyond that of lines in windows; the step of the last settle
        self.unplaced = 0  # bytes of malloc that no known line allocated
        self.nobodys = self.rose = 0  # all growth without a known line, and at how many snapshots in a row it rose
        self.larger = 0  # blocks of malloc that were given to lines, and that Python's count of blocks will have, too
        self.garbage = 0, 0  # blocks and bytes that the last collection freed; the first frees what imports left
        self.unknown = []  # growth without a known line, at each snapshot: seconds, steps, blocks, bytes
        self.number = self.vain = 0  # windows so far, and windows since a line grew
        self.figures = None  # malloc's figures before the open window
        self.traces = 0  # how many its last look found
        self.before = self.made = self.ours = 0, 0  # blocks and bytes of malloc: before the window, made in it, made by its looks
        self.free = ()  # lists and dictionaries that were free before it
        # With steps: whether a window is wanted; the step and times since when none was open; processor time of a step without a
        # window; and how many times as long a step takes in one.
        self.wanted, self.without, self.plain, self.slow = False, None, 0.0, None
        self.lasts, self.all = 0.0, 0.0  # seconds of a step on the clock, and processor seconds of all threads
        self.stride, self.limit, self.since = 1, 0.0, None  # steps between looks; the window's limit; when the traced step began, or None
        self.reading, self.walked = 0.01, 0.0  # seconds: of a look, on average in the last window; of the walk after the last look
        self.read = 0.0  # seconds of all looks of the open window
        self.opened = None  # the step at which the open window began; None if the clock opened it

    # Windows.

    def look(self):
        """Opens a window, takes a look in it, or closes it. Called when it is due."""
        self.due, self.walked = None, 0.0
        if self.began is None:
            self.open()
            return
        try:
            found = self.both()
            traces = _tracemalloc._get_traces()
            self.traces = len(traces)
            # Reading them now would be traced, too, which takes ten times as long. So few traces are read after the window.
            self.looks.append(traces if len(traces) <= UNREAD else read(traces))
            del traces
            if len(self.looks) == LOOKS:
                self.made = tuple(n - before - ours for n, before, ours in zip(found, self.before, self.ours))
                self.close()
                return
            self.ours = tuple(ours + now - n for ours, now, n in zip(self.ours, self.both(), found))
            if self.opened is None:
                self.due = time.monotonic() + self.apart
        except Exception:
            self.stop()  # else it would stay open, and slow the program down to its end
            raise

    def boundary(self, step):
        """A step has ended. Windows begin and end between steps, and looks are taken there: what a step allocates for itself is gone."""
        self.since = None
        self.bound(step)
        if self.opened is not None:
            self.since = self.agent.elapsed()

    def bound(self, step):
        now = self.agent.programs()
        if self.opened is None:
            if self.began is not None:
                self.stop()  # which the clock opened
            elif self.without is None or self.without[0] > step:
                self.without = step, now, time.monotonic(), time.process_time()
            elif self.wanted:
                self.wanted = False
                self.open_at(step, now)
            return
        steps = step - self.opened
        cost = self.cost(steps)
        if steps > 0:
            self.slow = max(1.0, 1 + cost / steps / self.plain)
        if steps <= 0 or cost > OVERDRAWN * self.limit or self.predicted() > HOPELESS * self.limit or not _tracemalloc.is_tracing():
            self.stop()
        elif steps >= self.stride * (len(self.looks) + 1):
            begun, before = work(), len(self.looks)
            self.look()
            took = max(0.0, work() - begun - self.walked)
            self.spent += took
            self.read += took
            self.reading = self.read / (before + 1)  # the last look has all analysed, and takes longest

    def cost(self, steps):
        """The extra processor seconds of so many steps in the open window. Tracing also slows other threads that run Python, and they hold
        Python's lock for longer. Then the extra time of the steps on the clock counts, up to the extra processor time of the process."""
        clock, programs, process = self.began
        cost = self.agent.programs() - programs - steps * self.plain
        if len(current()) > OWN:
            longer = time.monotonic() - clock - steps * self.lasts
            cost = max(cost, min(longer, time.process_time() - process - steps * self.all))
        return cost

    def end_overdrawn(self):
        """Ends tracing within a step that takes too long, such as one that compiles. Called from any thread. The end of the step does the
        rest."""
        since = self.since
        if since is not None and self.agent.elapsed() - since > OVERDRAWN * self.limit + self.plain:
            self.untrace()

    def open_at(self, step, now):
        """Opens a window at the end of a step, if the budget allows one."""
        steps = step - self.without[0]
        if steps >= LOOKS:
            self.plain = max(1e-6, (now - self.without[1]) / steps)
            self.lasts = max(self.plain, (time.monotonic() - self.without[2]) / steps)
            self.all = (time.process_time() - self.without[3]) / steps
        elif not self.plain:
            self.wanted = True
            return
        self.stride = 1
        left = STEPS_ALLOWANCE + STEPS_SHARE * self.elapsed() - self.spent
        if self.predicted() > left or self.foreign():
            return
        if self.slow:
            afford = left / (max(1, ENOUGH - self.number) + 1) / LOOKS - self.reading  # one window more finds the holder
            longest = min(LASTS / self.lasts, PART * step) / LOOKS  # so that a short run, too, has enough windows
            self.stride = max(1, min(int(afford / (self.plain * (max(LITTLE, self.slow) - 1))), int(longest)))
        self.limit, self.opened, self.read = self.predicted(), step, 0.0
        self.start()

    def predicted(self):
        """What a window is expected to cost, in seconds."""
        return LOOKS * (self.stride * self.plain * (max(LITTLE, self.slow or GUESS) - 1) + self.reading)

    def foreign(self):
        """Whether the program uses tracemalloc itself, or has threads that may crash when tracing ends."""
        if not MENDED and self.attaching():
            self.agent.heap.wanted = "off"
            self.agent.note("Python's heap is not traced: this Python may crash when tracing ends while a C++ thread waits for the GIL (python/cpython#128679; fixed in 3.12.9 and 3.13.2)")
            return True
        if "tracemalloc" in sys.modules or _tracemalloc.is_tracing():
            self.agent.heap.give_way()
            return True
        return False

    def attaching(self):
        """Whether the program has C++ threads that often take Python's lock, as those of collectives and of the backward pass on GPUs do.
        They allocate before they have it."""
        distributed, cuda = sys.modules.get("torch.distributed"), self.agent.torch.cuda
        return cuda is not None and cuda.recording or distributed is not None and distributed.is_available() and distributed.is_initialized()

    def open(self):
        agent = self.agent
        elapsed = self.elapsed()
        wanted = LASTS if agent.stepping else min(LASTS, max(agent.ticker.interval / 2, PART * elapsed))
        afford = (ALLOWANCE + SHARE * elapsed - self.spent) / max(1, ENOUGH - self.number) / self.pace
        self.apart = min(wanted, afford) / LOOKS
        if not self.foreign() and afford >= min(wanted, max(SHORTEST, LEAST * elapsed) / self.pace):
            self.start()

    def elapsed(self):
        """Seconds of which windows may take their share: including those in which the program waits, but not those in which it waits for a
        processor."""
        for_others = waited() - self.begun[1]
        return max(self.agent.elapsed(), time.monotonic() - self.begun[0] - for_others)

    def start(self):
        self.figures, self.traces, self.ours = self.malloc(), 0, (0, 0)
        self.began = time.monotonic(), 0.0 if self.opened is None else self.agent.programs(), time.process_time()
        self.depth = max(self.depth or 0, TORCH_DEPTH if self.agent.torch.module else DEPTH)
        self.free = free(lambda: []), free(lambda: {})
        self.before = self.both()
        _tracemalloc.start(self.depth)
        if self.opened is None:
            self.due = self.began[0] + self.apart

    def close(self):
        looks = self.looks  # another thread may replace them
        self.walk(looks)
        steps, ended = self.opened is not None, self.moment()
        span = self.stride if steps else self.apart
        self.stop()
        begun = work()
        found = [look if type(look) is dict else read(look) for look in looks]
        self.spent += 0 if steps else work() - begun
        changed = changes(found)
        leave_out(changed, abs(self.made[0]) + BLOCKS, abs(self.made[1]) + BYTES if self.in_use() else math.inf)
        if self.depth < DEEP and cut_off(changed, self.depth):
            self.depth, self.wanted = DEEP, True
            self.agent.own.bytes -= sum(map(sys.getsizeof, self.recent))
            for of in self.recent, self.spans, self.levels:
                of.clear()
            return
        self.keep(marshal.dumps(changed))
        del changed  # so that Python has as many free lists as before
        with self.agent.own:
            self.size = sum(e[1] for e in found[-1].values()) / max(1, sum(e[0] for e in found[-1].values()))
            self.spans.append(span)
            self.levels.append((ended, steps, self.level or (0, 0)))
            self.number += 1
            self.grows = self.growing()
            self.vain = 0 if self.grows else self.vain + 1

    def keep(self, changed):
        """Keeps what has changed in a window, as bytes. Their size is known even if the program's threads work meanwhile; thousands of objects
        would count as the program's growth."""
        first = sys.getsizeof(self.recent[0]) if len(self.recent) == RECENT else 0
        self.recent.append(changed)
        self.agent.own.bytes += sys.getsizeof(changed) - first

    def walk(self, looks):
        """Searches for the holders of what growing lines have allocated in the window, while it is still traced."""
        growing = self.grows
        if not growing or not _tracemalloc.is_tracing():
            return
        counts = [collections.Counter(), collections.Counter()]
        for look, made in zip((looks[0], looks[-1]), counts):
            for stack, n in ((s, sum(map(len, sizes))) for s, *sizes in by_stack(look)) if type(look) is list else ((s, e[0] + e[2]) for s, e in look.items()):
                stack = shortened(stack)
                if stack in growing:
                    made[stack] += n
        lines = {stack: n - counts[0][stack] for stack, n in counts[1].items()}
        self.walked = self.agent.holders.look({stack: n or 1 for stack, n in lines.items() if n >= 0})  # the search has its own budget
        self.spent -= 0 if self.opened else self.walked

    def stop(self):
        self.since = None
        if self.began is not None:
            self.untrace()
            self.free = ()
            took = time.monotonic() - self.began[0]
            if self.opened is None:
                cost = time.process_time() - self.began[2]
                self.pace = max(0.01, cost / took)
            else:
                cost = max(0.0, self.cost(self.agent.step - self.opened))
            self.spent += cost
            self.began, self.looks, self.due, self.figures, self.opened = None, [], None, None, None
            self.without = None
            self.wanted = self.number + 1 < ENOUGH

    def untrace(self):
        """Ends tracing. What tracemalloc does not free then is not the program's growth."""
        if not _tracemalloc.is_tracing():
            return
        freed, lost = _lost.stop(self.in_use, held(self.figures), self.depth, self.traces)
        self.agent.own.bytes += lost
        self.made = self.made[0], self.made[1] - freed - lost

    def in_use(self):
        return held(self.malloc())

    def both(self):
        return sys.getallocatedblocks(), self.in_use()

    def growing(self):
        """The lines that grow, with their growth in the last windows, in the form of lines, and their objects that malloc has. A line must grow
        by more than its largest fall in one window: what a loop replaces in each round rises and falls."""
        sums, falls, times, each, larger, kept = {}, {}, *(collections.Counter() for _ in range(4))
        for changed in map(marshal.loads, self.recent):
            for stack, (grown, fell, rose, stay) in changed.items():
                sums[stack] = [a + b for a, b in zip(sums.get(stack, (0,) * 5), grown)]
                falls[stack] = [max(a, b) for a, b in zip(falls.get(stack, (0,) * 5), fell)]
                times[stack] += grown[0] > 0 or grown[2] > 0
                each[stack] += rose
                kept[stack] += stay
                larger[stack] += 1 if rose > 0 else -RECENT * (rose < 0)
        lines = {stack: [0, 0, 0, each[stack], 0] for stack, n in larger.items() if n >= max(ENOUGH, len(self.recent) / 2)}
        for stack, g in sums.items():
            blocks, held = (g[by] > falls[stack][by] for by in (0, 3))
            if not held and g[2] > falls[stack][2] + len(self.recent):  # it also allocates larger objects, which come and go
                held, g = True, [*g[:3], kept[stack], g[4]]
            if times[stack] >= OFTEN and (blocks or held):
                lines[stack] = [max(0, x) for x in (g[:2] if blocks else [0, 0]) + (g[2:] if held else lines.get(stack, [0] * 5)[2:])]
        return lines

    # The whole heap.

    def settle(self):
        """Divides the heap's growth since the last snapshot among lines, and asks for a window if it has grown."""
        if self.began is not None:
            return  # tracing itself uses memory, too
        level = self.now()
        garbage = self.garbage
        if self.highest and self.rises(level, MUCH) and self.agent.heap.garbage_goes():
            before, level = level, self.now()
            self.garbage, garbage = [max(0, b - a) for b, a in zip(before, level)], (0, 0)
        changes = tuple(map(lasting, level, self.level or level, self.dips))
        if len(self.recent) >= ENOUGH and (self.grows or not self.agent.torch.module):  # beside PyTorch nothing is reported without a line
            growing, self.untold = self.grows, (0, 0)
            steps, spans = self.agent.step - self.settled, sum(self.spans)
            since, by_steps, before = self.levels[0]
            blocks = sum(g[0] for g in growing.values())
            for i, (at, change, little) in reversed([*enumerate(zip((0, 2), changes, (BLOCKS, BYTES)))]):
                change -= 0 if i else self.counted_as_bytes(change, growing)
                rate, native = sum(g[at and at + 1] for g in growing.values()) / spans, False
                if by_steps == self.agent.stepping and rate * (self.moment() - since) > FAR * max(little, level[i] - before[i]):
                    most = 0  # what those lines allocate replaces what is freed
                elif rate and by_steps:
                    most = FAR * rate * steps + little
                elif i and blocks and level[0] - before[0] > FAR * BLOCKS:
                    # Tracing slows the program by an unknown factor. If few blocks are freed, their number serves as the clock.
                    told = rate * max(spans * (level[0] - before[0]) / blocks, self.moment() - since)
                    native = True  # what no line allocates is in the process's own figures
                    most = change if FAR * told >= level[i] - before[i] else change * told / (level[i] - before[i])
                else:
                    most = change
                self.share(at, min(change, most), growing)
                if native:
                    self.unplaced += max(0, change - most)
                else:
                    self.beyond[i] += max(0, change - most)
        else:
            self.untold = tuple(u + c for u, c in zip(self.untold, changes))
            if len(self.recent) >= ENOUGH and not self.agent.stepping:  # with steps, Heap.look reports it
                self.unplaced = max(0, self.unplaced + changes[1])
        self.unknown.append((self.agent.elapsed(), self.agent.step, *(u + b - g for u, b, g in zip(self.untold, self.beyond, self.garbage))))
        nobodys = self.unplaced + max(0, self.beyond[1]) + max(0, self.untold[1]) if len(self.recent) >= ENOUGH else 0
        self.rose = self.rose + 1 if nobodys > self.nobodys else 0
        self.nobodys = nobodys
        self.settled = self.agent.step
        self.level = tuple(a + b for a, b in zip(self.level or level, changes))
        if self.rises(level, garbage=garbage):
            self.highest = level if self.highest is None else tuple(map(max, level, self.highest))
            self.ask()

    def moment(self):
        """Steps so far, or seconds if none count."""
        return self.agent.step if self.agent.stepping else self.agent.elapsed()

    def now(self):
        """Blocks and bytes of the heap that are neither the agent's nor tensors'."""
        own = self.agent.own
        blocks, heap = own.entry
        return blocks - own.blocks, self.agent.heap.in_use(heap) - self.agent.torch.bytes

    def rises(self, level, times=1, garbage=(0, 0)):
        """Whether the heap is higher than ever before, by more than this garbage."""
        return self.highest is None or any(n > high + times * little + g for n, high, little, g in zip(level, self.highest, (BLOCKS, BYTES), garbage))

    def ask(self):
        """Asks for a window."""
        if self.agent.stepping:
            self.wanted = True
        else:
            self.due = time.monotonic()

    def grown(self):
        """Bytes, blocks and stack of each line that has grown, and of growth without a line if it is not tiny."""
        rows = [(round(b + d), round(a + c) or 1, stack) for stack, (a, b, c, d) in self.lines.items() if (round(a + c) > 0 or a == c == 0 or d > BYTES) and b + d >= 1]
        least = TOLD * sum(r[0] for r in rows)
        return [r for r in rows if r[2] or r[0] >= least]

    def outgrows(self):
        """Whether the heap has grown by much without a known line, as with a buffer that a larger one replaces now and then."""
        return self.unplaced > MUCH * BYTES

    def outside(self):
        """Whether malloc's memory grows, and has grown by much, without a known line of Python."""
        return self.nobodys > MUCH * BYTES and self.rose >= ENOUGH

    def silent(self):
        """Whether the heap has grown by much without a known line, and went on growing in the second half of the steps, or of the time. With
        many snapshots, it must have grown in both quarters of that half: what a program allocates at its end is one jump."""
        shares = (0.5, 0.75, 1.0) if len(self.unknown) >= QUARTERS else (0.5, 1.0)
        by, whole = (1, self.agent.step) if self.agent.stepping else (0, self.agent.elapsed())  # imports take most of a short run's time
        levels = [next((u[2:] for u in reversed(self.unknown) if u[by] <= share * whole), (0, 0)) for share in shares]
        known = self.agent.heap.native.stack is not None
        for little, at in zip((BLOCKS,) if known else (BLOCKS, BYTES), zip(*levels)):
            parts = [later - before for before, later in zip(at, at[1:])]
            if at[-1] > MUCH * little and sum(parts) > MUCH * little / 2 and min(parts) > LATE * at[-1] / len(parts):
                return True
        return False

    def counted_as_bytes(self, change, growing):
        """How many of so many new blocks are malloc's, which lines have already. If lines grow by both kinds, at most malloc's part in windows."""
        small, large = (sum(g[i] for g in growing.values()) for i in (0, 4))
        told = max(0, min(self.larger, change * large / (small + large) if small else change))
        self.larger -= told
        return told

    def share(self, at, change, growing):
        """Divides blocks of Python's allocator (at 0), or bytes of malloc (at 2), among growing lines. If no line is known to grow, blocks get an
        empty stack, and bytes none: the process's own figures have them."""
        by, lines = at and at + 1, self.lines
        if change < 0:
            self.unplaced = max(0, self.unplaced + (at and change))
            # Lines that grow take the fall first, since what rose and fell again was theirs. The other lines take the rest.
            for entries in [lines[s] for s in growing if s in lines], [e for s, e in lines.items() if s not in growing]:
                total = sum(e[by] for e in entries)
                left = max(0, 1 + change / total) if total else 0
                for e in entries:
                    e[at], e[at + 1] = e[at] * left, e[at + 1] * left
                change = min(0, change + total)
            return
        weight = sum(g[by] for g in growing.values())
        if not weight and at == 0 and self.size:
            weight, growing = 1, {(): [1, self.size, 0, 0, 0]}
        if not weight and at == 2:
            self.unplaced += change
        for stack, g in growing.items() if weight else ():
            if g[by] < TOLD * weight:
                continue
            entry = lines.setdefault(stack, [0, 0, 0, 0])
            for i in (at, at + 1):
                entry[i] += change * g[i] / weight
            self.larger += change * g[4] / weight if at else 0


def lasting(now, before, dips):
    """By how much a total has changed for good."""
    dips.append(now)
    if now < before and len(dips) < DIPS:
        return 0
    highest = max(dips)
    dips.clear()
    return highest - before
