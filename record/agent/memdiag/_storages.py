"""The storages of tensors on the CPU: which are alive, what allocated them, and what stands for those that nobody watched."""

import _thread
import collections
import itertools

from . import _categories, _census
from ._autograd import quiet
from ._handlers import raised
from ._mode import DEPTH


class Storages:
    """The part of the source that records storages."""

    def __init__(self):
        self.stacks = {}  # key of a stack: its number
        self.keys = []  # keys of the stacks, by number
        self.known = {}  # frames by id of the code object and place in it
        self.codes = {}  # code objects by id, held so that no other gets the id
        self.stood = {}  # by size: the stack whose storages stood for most of the unwatched ones
        self.largest = {}  # by number of a stack: the bytes of the largest storage that it allocated
        self.anew, self.grown = set(), set()  # stacks that allocate ever larger storages: never from an older, smaller one; and from one

    def forget(self):
        """Forgets everything: nothing is known of this process's storages yet."""
        # StorageImpl address: [stack, bytes, step of birth, weight, turn]. Each entry has a weak reference to its storage.
        self.table = {}
        self.young, self.late = [], []  # addresses of this unit, and of the unit before it
        self.lent = {}  # StorageImpl address: address of its memory, which another library owns
        self.handles = _census.Handles()
        # handled: storages that had a Python tensor at the last census. given: those to which a walk has given one since.
        self.handled, self.given = None, set()
        self.older = set()  # in a child: storages that had a Python tensor before it was watched; None before the first census
        self.counted = {}  # by address: how many storages one stood for at the last snapshot
        self.bytes, self.count = 0, 0  # of live storages at the last snapshot
        self.pinned = set()  # storages that the record of pinned memory has
        self.categories = _categories.Categories(self.agent, self)
        self.told = _categories.Told()  # what the last census found

    def sweep_young(self):
        """Frees the structures of storages that this unit and the one before made and freed. They have no memory of their own any more, but lie
        scattered between large blocks of malloc, so that new large blocks would have to go elsewhere."""
        expired, free, table = self.weak._expired, self.weak._free_weak_ref, self.table
        for address in itertools.chain(self.young, self.late):
            # The entry goes first: another thread may fork after free, and the child would free it again.
            if address in table and expired(address) and table.pop(address, self) is not self:
                free(address)
        self.young, self.late = [], self.young

    def sweep(self):
        if self.mode is None:
            return
        expired, free, table = self.weak._expired, self.weak._free_weak_ref, self.table
        gone = [a for a in list(table) if expired(a)]
        for address in gone:
            if table.pop(address, self) is not self:
                free(address)
        self.young, self.late = [], []

    def release(self):
        free = getattr(getattr(self, "weak", None), "_free_weak_ref", None)
        if free is not None:
            for address in list(self.table):
                if self.table.pop(address, self) is not self:
                    free(address)
        self.table, self.young, self.late, self.lent = {}, [], [], {}

    def number(self, key, frame):
        """The number of a stack. key alternates the ids of its code objects and the places in them."""
        n = self.stacks.get(key)
        if n is None:
            n = self.stacks[key] = len(self.keys)
            self.keys.append(key)
            depth = DEPTH
            while frame is not None and depth:
                self.codes[id(frame.f_code)] = frame.f_code
                frame = frame.f_back
                depth -= 1
        return n

    def grows(self, stack, size, args):
        """A stack allocates a storage larger than any that it has allocated. If it is made from an older, smaller storage, the stack grows
        it: a cache to which data is appended. Else it is made anew: data as long as the input."""
        before, self.largest[stack] = self.largest.get(stack), size
        if before is None or stack in self.grown:
            return
        for t in itertools.chain(*(a if type(a) in (list, tuple) else (a,) for a in args)):
            if type(t) is self.module.Tensor and t.layout is self.module.strided:
                storage = t.untyped_storage()
                entry = self.table.get(storage._cdata)
                if (entry is None or entry[4] < self.turn) and before <= storage.nbytes() < size:
                    self.grown.add(stack)
                    self.anew.discard(stack)
                    return
        self.anew.add(stack)

    def frames(self, n):
        key, known, frames = self.keys[n], self.known, []
        for place in zip(key[::2], key[1::2]):
            f = known.get(place)
            if f is None:
                f = known[place] = frame_of(self.codes[place[0]], place[1])
            frames.append(f)
        return frames

    def threads(self):
        """Whether the program has threads that are not watched."""
        return _thread._count() > self.agent.ticker.running

    def fill(self, snapshot):
        if self.module is None:
            return
        snapshot.producer = "PyTorch " + self.version
        if self.mode is None:
            if self.cuda is not None:
                snapshot.categories = self.purposes().gpu
            return
        total = 0
        device = self.elsewhere(snapshot, id(self.module))
        device(None)  # the CPU comes first
        self.leave_pinned()
        places = self.places()
        again = self.lent.keys() - places.values()  # memory of another library that an older storage already counts
        counts, rest, gone = self.census(places, again)
        stood = collections.defaultdict(collections.Counter)
        self.counted, purposes = counts, self.purposes()
        snapshot.categories = purposes.gpu
        if self.agent.stepping and self.counts() and self.whole:
            self.pursue(sum(n for n, _ in rest.values()))
        for address, entry in list(self.table.items()):
            stack, size, birth, weight, turn = entry
            if address in again or address in self.pinned:
                continue
            if size == 0:
                size = entry[1] = self.bytes_now(address)
                if size == 0:
                    continue
            # Storages of the step that has just ended are alive at the end of every step, recorded or not, and count once. Only those that
            # outlive the next step stand for storages of unrecorded steps.
            if turn >= self.turn - 1:
                weight = 1
            weight = counts.get(address, weight)
            if counts.get(address, 1) > 1:
                stood[size][stack] += weight
            n = snapshot.stacks.add(stack, lambda: self.frames(stack))
            snapshot.add(device(address), address, size * weight, n, birth, weight, purposes.of(address, size, weight))
            total += size * weight
        for size, (count, address) in rest.items():
            total += size * count
            for category, n in purposes.shares(size, count):
                snapshot.add(device(address), address, size * n, 0, -1, n, category)
        for size, (count, address) in gone.items():
            stack = self.stood[size]
            total += size * count
            snapshot.add(device(address), address, size * count, snapshot.stacks.add(stack, lambda: self.frames(stack)), -1, count)
        # most_common(1) would import heapq, which dynamo takes out of sys.modules for a while.
        self.stood.update((size, stacks.most_common()[0][0]) for size, stacks in stood.items())
        snapshot.anew = [n for n in map(snapshot.stacks.known, self.anew) if n]
        snapshot.allocated()
        self.bytes = total
        self.count = sum(snapshot.blocks["count"])
        if self.reach() > 1:
            snapshot.notes.append(
                "tensors on the CPU are recorded at one step in up to %d; tensors of other steps are assigned to stacks by size" % self.reach())

    def purposes(self):
        """What tensors are used for, as far as that is known."""
        found = _categories.Found(self.module, self.cuda.blocks if self.cuda is not None and self.cuda.recording else None, self.told, self.elsewhere.of)
        try:
            with _census.unasked(self.module):
                self.categories.find(found, quiet(self.agent))
        except Exception as e:  # recording works without categories
            if raised(e):
                raise
            self.agent.note("the categories of tensors are unknown: %s: %s" % (type(e).__name__, str(e)[:200]))
        return found

    def leave_pinned(self):
        """Finds the storages in pinned memory, which has its own record."""
        blocks, self.pinned = self.in_pinned(), set()
        if blocks is None:
            return
        for address in list(self.table):
            storage = self.weak._new_with_weak_ptr(address)
            if storage is not None and blocks.start(storage.data_ptr()) is not None:
                self.pinned.add(address)

    def in_pinned(self):
        """The blocks of pinned memory and of GPUs; None if pinned memory has no record."""
        blocks = self.cuda.blocks if self.cuda is not None else None
        return blocks if blocks is not None and blocks.host else None

    def places(self):
        """The oldest storage at each address of another library's memory, {address of the memory: address of the storage}."""
        self.lent = {a: place for a, place in list(self.lent.items()) if a in self.table}
        return {place: a for a, place in reversed(self.lent.items())}

    def census(self, places, again):
        """Counts storages that nobody watched, as far as Python tensors refer to them. Returns three things: how many storages each watched
        one stands for; the rest, without a known stack; and those of sizes that a stack stood for until its watched storages were freed, as
        happens to the first entries of a queue."""
        if self.since is None and self.threads():
            self.since = self.turn
        self.told = _categories.Told()
        if self.since is None or not self.whole and self.older is not None and not self.agent.forced:
            return {}, {}, {}
        with _census.unasked(self.module):
            storages, each = _census.handled(self.module, quiet(self.agent), places, self.handles, self.told.parameters, self.elsewhere, self.told.pointers, self.in_pinned())
        self.given &= storages.keys()
        for address in self.given:
            del storages[address]
        if not each:
            self.told.add(storages, self.table)
        self.handled = frozenset(storages)
        if self.older is None:
            self.older = storages.keys() - self.table.keys()
        self.older &= storages.keys()
        older = [(a, storages.pop(a)) for a in self.older]
        before, births = {}, collections.defaultdict(set)
        for address, entry in list(self.table.items()):
            if address in again:
                continue
            if entry[4] < self.turn - 1:
                before[address] = entry
                births[entry[0]].add(entry[4])
            else:
                storages.pop(address, None)
        sampled = {a for a, e in before.items() if e[4] >= self.since}
        growing = {stack for stack, b in births.items() if len(b) > 1}
        gone = self.of_stacks_gone(storages, each, before)
        counts, rest = _census.share_out(storages, each, before, sampled, growing)
        for address, like in older:
            entry = rest.setdefault(like[0], [0, address])
            entry[0] += each.get(like, 1)
        for entry in itertools.chain(rest.values(), gone.values()):
            entry[0] = round(entry[0])
        return counts, rest, gone

    def of_stacks_gone(self, storages, each, before):
        """Takes storages out of storages if a stack stood for their size and has no watched storage left."""
        here = {(entry[0], entry[1]) for entry in before.values()}
        lost = {size for size, stack in self.stood.items() if (stack, size) not in here}
        gone = {}
        for address, like in list(storages.items()) if lost else ():
            if like[0] in lost and address not in before:
                entry = gone.setdefault(like[0], [0, address])
                entry[0] += each.get(like, 1)
                del storages[address]
        return gone

    def lines(self):
        """How many tensors are alive, by the file and line that allocated them."""
        out = collections.Counter()
        for stack, _, _, weight, _ in list(self.table.values()):
            frames = self.frames(stack)
            if frames:
                out[frames[0][1:]] += weight
        return out

    def bytes_now(self, address):
        storage = self.weak._new_with_weak_ptr(address)
        return 0 if storage is None else storage.nbytes()


def frame_of(code, lasti):
    """A frame as a triple: function, file, line."""
    line = code.co_firstlineno
    for start, end, n in code.co_lines():
        if start <= lasti < end and n is not None:
            line = n
            break
    return getattr(code, "co_qualname", code.co_name), code.co_filename, line
