"""Searches for the holders of what grows: decides when to search and for which call sites, and follows the holders that were found.

Walks go from the program's own names down to the objects, within a budget. After a walk has found a holder, each snapshot reads its length
without another walk.
"""

import _tracemalloc
import collections
import gc
import math
import sys
from _thread import get_ident

from ._autograd import quiet
from ._budget import Budget
from ._ceased import moment_of
from ._census import unasked
from ._clock import work
from ._frames import current
from ._graph import Graphs
from ._graph_walk import BIRTHS, NAMELESS, SECONDS, TRACED
from ._handlers import raised
from ._items import LEAST, Containers, described
from ._length import contents, length, reach
from ._lines import Lines
from ._longer import Ways
from ._places import ITEMS, NEW
from ._roots import Registries
from ._traces import DEEP
from ._walk import GRAPH, LARGER, SITES, UNSEEN, Site, Walk, key_text

# What all walks may cost: seconds at the start, plus a share of the time since the first step.
ALLOWANCE, SHARE = 0.15, 0.01
# After each walk that was cut short the next may last twice as long: LONGER - 1 times, or LONGER times in a window.
LONGER = 3
# WINDOW: seconds of a walk in a window, where each object costs more and few are searched for. DEEPER: it lasts so many times as long if
# stacks are deep, since each allocation of the walk has a deep stack, too.
WINDOW, DEEPER = 0.05, 3
# If a site has so many times as many blocks as when its holder was found, and a walk does not find that holder again, it is dropped: others
# hold the blocks. The holder stays if it is a container.
OUTGROWN = 4
# The next walk is due when the steps have grown so many times.
AGAIN = 1.6
# Hooks are taken to be registered again and again if there is one more in so many steps.
HOOKED = 2
# A container that a variable replaces in each step lies so deep at most.
SHALLOW = 2
# C code holds what atexit has registered, and no walk gets there. If atexit has more and more functions, it is taken to hold the objects
# to which no name leads.
EXITS = "atexit"


class Search:
    def __init__(self, agent, source):
        self.agent, self.source = agent, source
        self.budget = Budget(agent, ALLOWANCE, SHARE)
        self.next, self.next_look = 0, 0  # the steps of the next walk, and of the next one in a window
        self.found = {}  # by stack of tensors: the step at which the holder was found, and what Votes.holder returned
        self.lines = {}  # the same by stack of tracemalloc
        self.unheld = False  # whether a line of the last walk in a window has no holder: its text may be in a buffer, not in objects
        self.sizes = {}  # by stack of tensors: its blocks when the holder was found; infinite if that is a container
        self.ways = Ways()  # the containers on the way to the holders of either
        self.exits = None  # functions that atexit had at the last walk for lines, or at the first snapshot
        self.arrays = {}  # JAX's arrays by their bytes: how many were found, how many of them in the container, and what Votes.holder returned
        self.first, self.unseen = {}, None  # at the first look: bytes by stack; and tensors without a stack by their bytes
        self.most, self.rises = {}, collections.Counter()  # by stack: the most bytes so far, and how many looks found more than before
        self.early = set()  # stacks that have grown, but seldom: so do a loader's batches when it begins
        self.kept = None  # what holds most nodes of autograd's graph, and their least number; None before that has grown
        self.nodes = None  # the first step at which they were counted, and their number then
        self.graphs = Graphs(agent, source)
        self.containers = Containers(self.bound, key_text)
        self.watch = Lines(agent, self.containers, key_text)
        self.cut, self.cuts, self.shorts = False, 0, 0  # whether the last walk was cut short; how many were, in windows and outside
        self.registered, self.walked = Registries(), False  # the registries of libraries; they are learned after a walk beyond the program's own names
        self.hooks = None  # the step at which hooks were first counted, and their number
        self.passing = set()  # variables that have another object in each step, as Node.variable returns them
        self.rings = {}  # by path of a list with free places at its end: its length, and the step of that

    def begin_anew(self):
        """Steps count from now on: the budget begins anew."""
        self.budget.spent, self.next, self.next_look = 0.0, 0, 0
        self.graphs.begin_anew()

    def fill(self, snapshot):
        """Adds the known holders, after a walk if one is due. Returns the seconds that this took."""
        begun = work()
        heap, agent = self.agent.heap, self.agent
        self.exits = exits() if self.exits is None else self.exits
        moment = moment_of(agent)
        unexplained = self.unexplained()
        self.budget.allowance = ALLOWANCE + (TRACED if heap.tracing or self.deep() else 0)
        if moment >= self.next and self.budget.affords():
            wanted, unseen, lines = self.growing(), self.stackless(snapshot), heap.growing() if heap.tracing else {}
            blocks = self.blocks()
            placed = blocks.growing() if blocks else {}
            if wanted or placed or unseen or lines or unexplained:
                seconds = SECONDS + (TRACED / 2 if lines else 0)
                self.walk(wanted, unseen, lines, min(seconds * 2**self.shorts, max(seconds, self.budget.left())), placed=placed, counting=unexplained)
                self.shorts = min(LONGER - 1, self.shorts + self.cut)
                self.next = int(moment * AGAIN) + 1
        if (self.walked or unexplained) and (heap.tracing or not _tracemalloc.is_tracing()):  # in a window this would take twenty times as long
            self.registered.learn()
            self.walked = False
        if unexplained and moment >= self.containers.next:
            self.containers.follow((*place, False) for place in self.registered.grown(LEAST))
            self.containers.next = int(moment * AGAIN) + 1
        lengths = {(): None}

        def length(nodes):
            if nodes not in lengths:
                lengths[nodes] = self.length(nodes, None)
            return lengths[nodes]

        for table, stack, (step, (path, kind, items, nodes)) in [(t, *entry) for t in (self.found, self.lines) for entry in t.items()]:
            place = self.place(stack, snapshot)
            if place:
                now = exits() if path == EXITS else length(nodes)
                if nodes and now is None and table is self.found and self.passes(nodes):
                    del table[stack]
                    continue
                longer = self.ways.longer(stack, items, length) if (now or 0) <= items else None
                if longer:
                    path, kind, now, nodes = longer
                    table[stack] = agent.step, longer
                h = {**place, "path": path, "kind": kind, "items": items if now is None else now}
                if items and now is None and step < agent.step:
                    h["counted"] = step
                bound = self.bound(path, nodes)
                if bound:
                    h["bound"] = bound
                snapshot.holders.append(h)
        if self.source.module and quiet(self.agent):
            with unasked(self.source.module):
                self.graphs.fill(snapshot, key_text)
        if self.kept and not self.graphs.grow():
            n = snapshot.stacks.add(GRAPH, lambda: [("autograd's graph", "", 0)])
            snapshot.holders.append({"stack": n, "path": self.kept[0], "kind": "nodes", "items": self.kept[1]})
        self.containers.fill(snapshot)
        took = work() - begun
        self.budget.spent += took
        return took

    def blocks(self):
        """The blocks of PyTorch's allocator on a GPU; None if they are not recorded."""
        cuda = self.source.cuda
        return cuda.blocks if cuda is not None and cuda.recording else None

    def place(self, stack, snapshot):
        """What identifies a stack in a snapshot: its number, or the address of one of its blocks on a GPU. None if the snapshot lacks the
        stack."""
        if type(stack) is Site:
            address = self.blocks().one(stack.number)
            return address and {"stack": 0, "address": address}
        n = 0 if stack == UNSEEN else snapshot.stacks.known(stack)
        return None if n is None else {"stack": n}

    def of_arrays(self):
        """The holders of JAX's arrays of each size, since JAX's profile has no more than sizes: bytes, number of arrays found, items, kind
        and path."""
        begun, moment = work(), moment_of(self.agent)
        if moment >= self.next and self.budget.affords():
            self.walk({}, {}, {})
            self.next = int(moment * AGAIN) + 1
        self.budget.spent += work() - begun
        for size, (found, inside, (path, kind, items, nodes)) in self.arrays.items():
            now = self.length(nodes, items) if nodes else items
            yield size, max(round(found + inside * (now - items) / items) if items else found, now), now, kind, path

    def unexplained(self):
        """Whether the heap grows by more than tensors and known graphs explain, or hooks are registered again and again. A hook takes little
        memory, but costs time at each step."""
        return (self.agent.heap.outgrows() or self.hooked()) and not self.graphs.grow()

    def hooked(self):
        """Whether the program registers hooks of PyTorch again and again. Hooks that it removes count, too."""
        handle = contents(sys.modules["torch.utils.hooks"]).get("RemovableHandle") if "torch.utils.hooks" in sys.modules else None
        registered = getattr(handle, "next_id", 0)
        self.hooks = self.hooks or (self.agent.step, registered)
        step, before = self.hooks
        return self.agent.step - step >= LEAST * HOOKED and HOOKED * (registered - before) >= self.agent.step - step

    def look(self, lines):
        """Searches for the holders of what growing lines allocated in a window, if a walk is due. lines: the number of objects of each. Returns
        the seconds that this took."""
        begun, agent = work(), self.agent
        moment = moment_of(agent)
        left = self.budget.left()
        if (moment >= self.next_look or lines.keys() - self.lines.keys()) and lines and left > 0:
            seconds = WINDOW * (DEEPER if self.deep() else 1)
            self.walk({}, {}, lines, min(seconds * 2**self.cuts, max(seconds, left)), NEW, counting=self.unexplained() or self.unheld)
            self.unheld = bool(lines.keys() - self.lines.keys())
            self.cuts = min(LONGER, self.cuts + self.cut)
            self.next_look = int(moment * AGAIN) + 1
        took = work() - begun
        self.budget.spent += took
        return took

    def deep(self):
        """Whether windows have deep stacks."""
        return self.agent.heap.windows.depth == DEEP

    def length(self, nodes, items):
        """How many items containers have now; items if they cannot be reached."""
        try:
            return sum(length(n, key_text) for n in nodes)
        except Exception:
            return items  # it cannot be reached without a walk

    def passes(self, nodes):
        """Whether the variables have other containers by now, none longer than those that a walk found. Then these belonged to the step that ran,
        and another holder is searched for."""
        for n in nodes:
            try:
                obj = reach(n, key_text)
                if n.depth > SHALLOW or id(obj) == n.id or described(obj)[1] > n.items:
                    return False
            except Exception as e:
                if raised(e):
                    raise
                return False
        new = {n.variable() for n in nodes} - self.passing
        self.passing |= new
        self.next = 0 if new else self.next
        return bool(new)

    def bound(self, path, nodes):
        """How many items containers may have in all; 0 if unknown. Whether a list keeps its length shows at a later step."""
        total = sum(n.bound for n in nodes) if all(n.bound for n in nodes) else 0
        if any(n.ring for n in nodes):
            first, step = self.rings.get(path, (0, 0))
            if first != total:
                self.rings[path] = total, moment_of(self.agent)
            if first != total or step == moment_of(self.agent):
                return 0
        return total

    def growing(self):
        """The storages of the largest growing sites, with their sites. Storages of several steps survive there, or its bytes grow."""
        births, sizes, found, now = {}, {}, {}, self.source.turn - 1
        table = [(a, entry) for a, entry in list(self.source.table.items()) if a not in self.source.pinned]
        for address, (stack, size, _, weight, turn) in table:
            births.setdefault(stack, set()).add(turn)
            sizes[stack] = sizes.get(stack, 0) + size * weight
            found[stack] = found.get(stack, 0) + size * self.source.counted.get(address, 1)
        for s, n in found.items():
            self.rises[s] += n > self.most.get(s, n)
            self.most[s] = max(n, self.most.get(s, n))
        sites = [s for s, b in births.items() if len(b) >= BIRTHS or self.rises[s] >= BIRTHS or found[s] > LARGER * self.first.setdefault(s, found[s])]
        sites.sort(key=lambda s: sizes[s], reverse=True)
        self.early = {s for s in sites if len(births[s]) < BIRTHS and self.rises[s] < BIRTHS}
        # New storages are held by the running step or function, which does not show who holds the rest.
        old = {s: len(births[s]) < BIRTHS for s in sites[:SITES]}
        return {address: stack for address, (stack, _, _, _, turn) in table if stack in old and (turn < now or old[stack])}

    def stackless(self, snapshot):
        """The sizes in bytes of tensors without a stack that have become more, with their number."""
        now, blocks = collections.Counter(), snapshot.blocks
        for stack, size, count in zip(blocks["stack"], blocks["size"], blocks["count"]):
            if stack == 0:
                now[size // count] += count
        if self.unseen is None and now:
            self.unseen = now
        return {size: n for size, n in now.items() if n >= self.unseen[size] + BIRTHS}

    def walk(self, wanted, unseen, lines, seconds=SECONDS, items=ITEMS, placed=(), counting=False):
        walk = Walk(self.source.module, wanted, lines, unseen, self.source.table, items, self.source.saved, quiet(self.agent))
        if placed:
            walk.place(self.blocks(), placed)
        walk.early, walk.handled, walk.given, walk.registered, walk.passing = self.early, self.source.handled, self.source.given, self.registered, self.passing
        if unseen:
            walk.left_out = self.source.elsewhere.left_out
        if counting:
            walk.containers = []
        # A walk makes many objects, for which the collector would go through all of the program's. It stays on while another thread of the
        # program runs: that would see it off, or may switch it off itself.
        paused = gc.isenabled() and current().keys() <= {get_ident(), self.agent.ticker.thread}
        if paused:
            gc.disable()
        try:
            with unasked(walk.torch):
                walk.run(seconds, bool(walk.torch) and counting)
                if counting:
                    self.containers.found(walk.containers)
        finally:
            if paused:
                gc.enable()
            self.cut, self.walked = walk.cut, not walk.near
            if walk.kept:
                self.keeps(*walk.kept)
                self.graphs.found(walk.ends)
            for stack, holder in walk.graph_hits.items():
                self.found[stack], self.sizes[stack] = (self.agent.step, holder), math.inf
            for stack in walk.covered():
                holder = walk.hits[stack].holder(walk.sizes[stack])
                self.found[stack] = self.agent.step, holder
                self.sizes[stack] = math.inf if holder[3] else walk.sizes[stack]
                self.ways.found(stack, walk.hits[stack].place)
            for stack, size in walk.sizes.items():
                if size > OUTGROWN * self.sizes.get(stack, math.inf):
                    self.found.pop(stack, None)
            for n, votes in walk.array_hits.items():
                if votes.total >= BIRTHS:
                    holder = votes.holder()
                    self.arrays[n] = round(votes.total), votes.inside(holder[3]), holder
            for stack in walk.held_lines():
                holder = walk.line_hits[stack].holder(lines[stack])
                if holder[3] or stack not in self.lines:  # else only a variable of the running step holds what is new
                    self.lines[stack] = self.agent.step, holder
                    self.ways.found(stack, walk.line_hits[stack].place)
            if lines and _tracemalloc.is_tracing():
                before, self.exits = self.exits, exits()
                nameless = (EXITS, "list", self.exits, ()) if before is not None and self.exits >= before + BIRTHS else (NAMELESS, "object", 0, ())
                for stack in walk.unreached() if walk.reached else ():
                    if stack not in self.lines or self.lines[stack][1][0] == NAMELESS:
                        self.lines[stack] = self.agent.step, nameless

    def keeps(self, path, nodes, whole):
        """Notes what holds most nodes of autograd's graph. If there is at least one more for each step, the graph grows. If each step has a graph
        of its own, their number stays."""
        step = self.agent.step
        first_step, first = self.nodes = self.nodes or (step, nodes)
        if nodes - first >= max(1, step - first_step):
            if whole or self.kept is None or nodes > self.kept[1]:
                self.kept = path, nodes
        elif whole:
            self.kept, self.nodes = None, (step, nodes)


def exits():
    """How many functions atexit has registered."""
    return sys.modules["atexit"]._ncallbacks() if "atexit" in sys.modules else 0
