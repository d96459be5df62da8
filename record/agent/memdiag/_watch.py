"""memdiag.watch: how many tensors stay after calls of a function, or passes through a block.

Under the recorder, tensors are listed before and after a call. Young tensors, which Python's collector has in a list of their own, take
microseconds. After a call with a collection, all tensors must be listed, which takes milliseconds. So of many calls only some are looked
at. Without the recorder, nothing is done.
"""

import gc
import sys

TYPE_CHECKING = False  # as in typing, whose import takes milliseconds
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

# What looks may cost, and searches for holders again: seconds at the start, plus a share of the time since the first step.
ALLOWANCE, SHARE = 0.1, 0.01
# The holders of what stays are searched once tensors of so many calls stay, and again after so many times the calls.
CALLS, AGAIN = 4, 1.6
# From this generation on, a collection makes objects old; from Python 3.14 on, every collection does.
OLD = 1 if sys.version_info < (3, 14) else 0
# Entries of earlier storages that are freed are dropped when there are so many times as many entries.
MORE = 1.5
# Of calls that overlap without a pause, so many share one look.
TOGETHER = 16
# The end of the path of the file with the wrapper functions. The program may have the package from another folder than the agent.
WRAPPER = "/memdiag/_wrapper.py"
# The last calls. The program may still use their results.
RECENT = 2


class watch:
    """Counts the tensors that stay after a function or a block, under memdiag record.

        @memdiag.watch("collate")            with memdiag.watch("evaluate"):
        def collate(batch): ...                  evaluate(model)

    The run then says: watch "collate": after 100 calls 100 tensors (50.0 KiB) stay, held by list `kept` (100 items).
    A call of a coroutine function ends when it has been awaited, and a call of a generator when it is exhausted or closed. Such calls
    may overlap: then tensors that others allocate meanwhile count as theirs until they are freed. Blocks that overlap on one thread are
    one call. Watches with the same name are one watch. Calls that run on several threads at once are not kept apart. Without the
    recorder, a watch does nothing. Raises TypeError without a name, and no other error.
    """

    def __init__(self, name: str) -> None:
        if callable(name):  # @memdiag.watch would put the watch in place of the function, which then never ran
            raise TypeError('write @memdiag.watch("name")')
        self.name = str(name)

    def __call__(self, function: "F") -> "F":
        from ._wrapper import wrapper

        return wrapper(self, function)  # type: ignore[return-value]

    def __enter__(self) -> "watch":
        self._tell("begin")
        return self

    def __exit__(self, *_: object) -> None:
        self._tell("end")

    def __repr__(self):
        return "memdiag.watch(%r)" % self.name

    @property
    def calls(self) -> int:
        """How many calls have ended; 0 without the recorder."""
        return self._figure("calls")

    @property
    def tensors(self) -> int:
        """How many tensors stayed at the last look."""
        return self._figure("tensors")

    @property
    def bytes(self) -> int:
        """Bytes of these tensors."""
        return self._figure("bytes")

    @property
    def held_by(self) -> str:
        """What holds these tensors, such as "list `kept` (100 items)"; "" if that is not known."""
        return self._figure("held_by") or ""

    def _tell(self, what):
        from . import _running

        if _running is not None:
            change, begun = getattr(stays_of(_running, self.name), what), []
            _running.guarded("watch", lambda: (begun.append(True), change(True)))
            if not begun and not _running.stopped:
                change(False)

    def _figure(self, what):
        from . import _running

        return 0 if _running is None else getattr(stays_of(_running, self.name), what)


class Overlapping:
    """A context for a call that other calls of the same name may overlap on the same thread."""

    def __init__(self, watch):
        self.watch = watch

    def __enter__(self):
        self.watch._tell("begin_overlapping")

    def __exit__(self, *_):
        self.watch._tell("end_overlapping")


def stays_of(agent, name):
    watches = agent.__dict__.setdefault("watches", {})
    if name not in watches:
        watches[name] = Stays(agent, name)
    return watches[name]


def note_all(agent, final):
    """Updates the notes of all watches: calls may have ended since the last look. final: whether this is the process's last report."""
    for stays in list(agent.__dict__.get("watches", {}).values()):
        stays.note(final)


class Stays:
    """What is known of the watches with one name."""

    def __init__(self, agent, name):
        self.agent, self.name = agent, name
        self.calls, self.tensors, self.bytes, self.held_by = 0, 0, 0, ""
        self.thread, self.depth = None, 0  # of the current call, which may call itself
        self.open, self.ended = 0, 0  # current overlapping calls, and how many ended since the last look
        self.looking, self.before, self.swept = False, set(), 0  # weak references to the storages of before; how many after the last sweep
        self.made = {}  # by weak reference to a live storage: bytes, the call, and for how many calls it stands
        self.looks, self.sampled = [], False  # the last looks: after which call, and how many ended since the list; whether other calls were not looked at
        self.looked = 0  # calls that were looked at
        self.deep, self.collections = False, None  # whether all tensors are listed; the number of collections at the list
        self.spent, self.searched, self.next = 0.0, 0.0, 0
        self.noted = None

    # look: False if the agent is at work in another thread. Then a call is counted, and not looked at.

    def begin(self, look):
        from _thread import get_ident

        if self.thread is None:
            self.thread = get_ident()
            if look:
                self.list_before()
        if self.thread == get_ident():
            self.depth += 1

    def begin_overlapping(self, look):
        if self.open == 0:
            self.ended = 0
            if look:
                self.list_before()
        self.open += 1

    def list_before(self):
        """Lists the storages before a call, or before the first of several that overlap."""
        torch = self.agent.torch.module
        if torch is not None and self.affords(self.spent):
            with Cost(self, "spent"):
                self.collections = collections()
                self.looking = True
                # A young tensor may be a view of an old storage, so all storages are listed once.
                for address, s in storages(torch, self.deep or not self.before).items():
                    if address not in self.before and address not in self.made:
                        self.before.add(s._weak_ref())

    def end(self, look):
        from _thread import get_ident

        if self.thread == get_ident() and self.depth > 1:
            self.depth -= 1
            return
        self.calls += 1
        if self.thread == get_ident():
            self.thread, self.depth, self.ended = None, 0, 1
            looking, self.looking = self.looking and look, False
            if looking:
                with Cost(self, "spent"):
                    self.look()

    def end_overlapping(self, look):
        self.calls += 1
        self.open = max(0, self.open - 1)  # a call that began before the recorder was not announced
        self.ended += 1
        if look and self.looking and (self.open == 0 or self.ended >= TOGETHER and self.affords(self.spent)):
            with Cost(self, "spent"):
                self.look()
                self.collections, self.ended = collections(), 0
        self.looking = self.looking and self.open > 0

    def affords(self, spent):
        return spent <= ALLOWANCE + SHARE * self.agent.elapsed()

    def look(self):
        torch = self.agent.torch.module
        expired, free = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        old = collections() != self.collections
        whole, self.deep = self.deep or not old, old
        weight = (self.calls - (self.looks[-1][0] if self.looks else 0)) / max(1, self.ended)
        for address, s in storages(torch, old).items() if whole else ():
            if address not in self.before and address not in self.made:
                self.made[s._weak_ref()] = s.nbytes(), self.calls, weight
        if not whole:
            return
        if len(self.before) > MORE * self.swept:
            for address in [a for a in self.before if expired(a)]:
                self.before.discard(address)  # first: another thread may fork after free, and the child would free it again
                free(address)
            self.swept = len(self.before)
        for address in [a for a in self.made if expired(a)]:
            del self.made[address]
            free(address)
        self.looks, self.sampled = [*self.looks[-RECENT:], (self.calls, self.ended)], self.sampled or weight > 1
        self.looked += self.ended
        self.judge()

    def judge(self):
        """Judges how many tensors stay. The program may still use the results of the last calls, so of these only as many count as earlier
        calls have left on average. A call with a look stands for the calls before it without one."""
        recent = [(c, together) for c, together in self.looks if c > self.calls - RECENT]
        before = next((c for c, _ in reversed(self.looks) if c <= self.calls - RECENT), 0)
        old = [(n, weight) for n, call, weight in self.made.values() if call <= before]
        seen = round(sum(weight for _, weight in old))
        usual, self.tensors = seen // max(1, before), seen
        for call, together in recent:
            weights = [weight for _, c, weight in self.made.values() if c == call]
            self.tensors += round(sum(weights[:usual * together]))
        self.bytes = round(sum(n * weight for n, weight in old) * self.tensors / max(1, seen))
        if len({call for _, call, _ in self.made.values()}) > CALLS and self.calls >= self.next and self.affords(self.searched):
            with Cost(self, "searched"):
                self.search()
            self.next = int(self.calls * AGAIN) + 1
        self.note()

    def search(self):
        """Searches for holders of tensors of earlier calls. The search has its own budget."""
        holders, site = self.agent.holders, ("watch", self.name)
        holders.walk({a: site for a, (_, call, _) in self.made.items() if call <= self.calls - RECENT}, {}, {})
        if site in holders.found:
            path, kind, items, _ = holders.found.pop(site)[1]
            self.held_by = "%s `%s`%s" % (kind, path, " (%d items)" % items if items else "")

    def note(self, final=False):
        """Notes what the last look found, and how many calls were looked at if not all were. final: whether no later note replaces it."""
        if not self.looks:
            return
        last, few = self.looks[-1][0], self.looked < self.calls
        text = "watch \"%s\": after %d call%s %s%s%s%s" % (
            self.name, last, "s"[:last > 1], "about " if self.sampled and self.tensors else "", self.stay(),
            "; %d of %d calls %s looked at" % (self.looked, self.calls, "was" if self.looked == 1 else "were") if few else "",
            "" if final else "; later calls were not recorded")
        self.agent.notes.pop(self.noted, None)
        self.agent.note(text)
        self.noted = text

    def stay(self):
        if not self.tensors:
            return "no tensor stays"
        return "%d tensor%s (%s) stay%s%s" % (self.tensors, "s"[:self.tensors > 1], size(self.bytes), "s"[self.tensors > 1:],
                                                ", held by " + self.held_by if self.held_by else "")


class Cost:
    """A context that adds its seconds of work to a field."""

    def __init__(self, stays, field):
        self.stays, self.field = stays, field

    def __enter__(self):
        from ._clock import work

        self.own, self.work, self.begun = self.stays.agent.own, work, work()
        self.own.__enter__()

    def __exit__(self, *_):
        self.own.__exit__()
        setattr(self.stays, self.field, getattr(self.stays, self.field) + self.work() - self.begun)


def collections():
    """How often objects have become old. Those made since then are young."""
    return [g["collections"] for g in gc.get_stats()[OLD:]]


def storages(torch, deep):
    """The storages with bytes that a young tensor of the program has, or any tensor, by address. Tensors of subclasses are left out: asking
    them may call the program."""
    from ._census import unasked
    from ._handlers import raised
    from ._objects import of_types

    kinds, found = (torch.Tensor, torch.nn.Parameter), {}
    with unasked(torch):
        tensors = of_types(kinds, gc.get_referrers, *kinds) if deep else [t for g in range(OLD + 1) for t in of_types(kinds, gc.get_objects, g)]
        for t in tensors:
            try:
                s = t.untyped_storage()
                if type(s.nbytes()) is int and s.nbytes():
                    found[s._cdata] = s
            except Exception as e:
                if raised(e):
                    raise
                # It has no storage: sparse, or of a transformation.
    return found


def size(n):
    for unit in "B", "KiB", "MiB":
        if n < 1024:
            return "%d B" % n if unit == "B" else "%.1f %s" % (n, unit)
        n /= 1024
    return "%.1f GiB" % n
