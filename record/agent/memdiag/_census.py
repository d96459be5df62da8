"""How many tensors live, where only some of the steps that made them were watched.

Python's collector knows every tensor that the program has a handle of. So of each size the storages
that nobody watched are counted one by one, and shared out among the stacks that were seen to make
storages of that size, with that part in autograd's graph. What only the graph holds is not among them,
but for that of watched steps: what an operator hands to a mode has a handle from then on.
"""

import collections
import contextlib
import gc
import math
import sys
import weakref

from ._handlers import raised
from ._objects import of_types

# Tensors that are looked into, about, of more; they are drawn at random, since those of one storage often come in a row.
MOST = 20_000
# New objects of which it is faster to go through all that there are.
YOUNG = 50_000
# Whether the collector lists young objects apart. Free-threaded Python has no generations.
GENERATIONS = getattr(sys, "_is_gil_enabled", lambda: True)()
# Halvings of the range in which the number of tensors to a storage is looked for.
HALVINGS = 30
# The chance below which so few handles, and the share of what is expected up to which, are those of watched steps
# only, of what the graph alone holds.
DOUBTFUL, FEW = 0.01, 0.8
# What autograd makes of a tensor: an input of its graph, or a result.
LEAF, RESULT = 1, 2


def lender(storage):
    """The address of a storage's memory where another library owns it, as NumPy does under torch.from_numpy and
    torch.as_tensor: several storages may lie there. 0 where it is PyTorch's, or shared by processes, as a loader's
    workers hand on their batches; None where there is none."""
    if storage.resizable() or storage.is_shared():
        return 0
    try:
        return storage.data_ptr() or None
    except RuntimeError:
        return None  # of a transformation, which computes nothing


def unasked(torch):
    """A context in which tensors do not ask the program's subclasses and modes how to answer."""
    guard = getattr(getattr(torch, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
    return guard()


class Handles:
    """The program's tensors. To go through all of Python's objects for them takes 25 ms beside PyTorch. So those of the last
    census are remembered by weak references, and only what has come since is gone through, as long as that is all: either
    Python's collector has made none of it old, or there are as many tensors as their type has references."""

    def __init__(self):
        self.known = None  # weak references; None where a census has to go through all objects
        self.promotions, self.references = -1, 0  # when those were found

    def of(self, kinds):
        """All tensors of these types."""
        before, tensors = promotions(), None
        if self.known is not None and gc.get_count()[0] < YOUNG:
            tensors = self.remembered(kinds)
        if tensors is None:
            # Every object refers to its type. To go through all objects for theirs takes half as long as to list them.
            tensors = of_types(kinds, gc.get_referrers, *kinds)
        self.known = [*map(weakref.ref, tensors)] if GENERATIONS and len(tensors) <= MOST else None
        self.promotions, self.references = before, references(kinds)
        return tensors

    def remembered(self, kinds):
        """Those of the last census that are left, and new ones; None where these may not be all."""
        tensors = {id(t): t for t in (r() for r in self.known) if t is not None}
        gone = len(self.known) - len(tensors)
        left = len(tensors)
        for generation in 0, 1:  # from the first an object may come into the second meanwhile
            tensors.update((id(t), t) for t in of_types(kinds, gc.get_objects, generation))
        whole = promotions() == self.promotions or len(tensors) - left == references(kinds) - self.references + gone
        return list(tensors.values()) if whole else None


def promotions():
    """How often the collector may have made objects old, which are then listed only among all."""
    return sum(s["collections"] for s in gc.get_stats()[1:]) if sys.version_info < (3, 14) else math.nan


def references(kinds):
    """How many references there are to types. Each object has one to its own."""
    return sum(map(sys.getrefcount, kinds))


def handled(torch, quiet=True, lent=(), handles=None, parameters=None, elsewhere=None, results=None, pinned=None):
    """The live storages on the CPU, and elsewhere where no allocator records itself, that a tensor of the program's has, by address: their bytes, and what autograd makes
    of those tensors where it is quiet; and the number of storages for which each stands, {(bytes, part): number}, empty where
    all tensors were looked into.
    Of storages in one place of another library's memory there is one: that which lent has, {place: address}, or else any.
    Parameters, a set, receives the addresses of parameters, and results, another, the pointers of what autograd has made on a GPU. Storages in
    blocks of pinned, a Blocks, are left to the record of those. Tensors of subclasses are left out: to ask them may call the program."""
    tensors = (handles or Handles()).of((torch.Tensor, torch.nn.Parameter))
    drawn = MOST / max(MOST, len(tensors))
    if drawn < 1:
        from random import Random  # which takes milliseconds to import

        draw = Random(0).random  # the program's draws stay as they were
        tensors = [t for t in tensors if draw() < drawn]
    storages, lent, found = {}, dict(lent), collections.Counter()
    for t in tensors:
        try:
            if t.is_cpu or elsewhere is not None and elsewhere.of(t):
                s = t.untyped_storage()
                if type(s.nbytes()) is not int:
                    continue  # a symbol: of a graph that is being traced
                if pinned is not None and pinned.start(s.data_ptr()) is not None:
                    continue
                if elsewhere is not None:
                    elsewhere.note(s._cdata, t)
                place = lender(s)
                if place is not None:
                    address = lent.setdefault(place, s._cdata) if place else s._cdata
                    _, part = storages.get(address, (0, 0))
                    if quiet and t.requires_grad:
                        part |= LEAF if t.is_leaf else RESULT
                    storages[address] = s.nbytes(), part
                    found[address] += 1
                    if parameters is not None and type(t) is torch.nn.Parameter:
                        parameters.add(address)
            elif results is not None and quiet and t.requires_grad and not t.is_leaf:
                results.add(t.untyped_storage().data_ptr())
        except Exception as e:
            if raised(e):
                raise
            # It has none: sparse, or of a transformation.
    if drawn == 1:
        return storages, {}
    looks, numbers = collections.Counter(), collections.Counter(storages.values())
    for a, like in storages.items():
        looks[like] += found[a]
    return storages, {like: stands(looks[like] / n, drawn) for like, n in numbers.items()}


def stands(looks, drawn):
    """For how many storages one stands that was found, where it was so many times on average, and of all tensors a part was
    drawn: the more tensors a storage has, the more often it is found again."""
    least, most = 1.0, max(1.0, looks / drawn)
    for _ in range(HALVINGS if looks > 1 else 0):
        tensors = (least + most) / 2
        if tensors * drawn / (1 - (1 - drawn) ** tensors) < looks:
            least = tensors
        else:
            most = tensors
    return looks / drawn / (least if looks > 1 else 1)


def share_out(storages, each, watched, sampled, growing):
    """Shares out what is in storages, as of handled, and not among the watched, {address: [stack, bytes, birth, weight,
    turn]}. Where not all tensors were looked into, one of them stands for so many, each by its likeness.

    Sampled are the addresses of those that came when not all was watched, and growing the stacks that
    have made storages at several times. Returns how many each address stands for, itself among them,
    and what is left of each size: {bytes: [number, address of one]}."""
    counts = {a: 1 for a in watched if each or a in storages}
    rest = {}
    for a, like in storages.items():
        if a not in watched and like[0]:
            entry = rest.setdefault(like, [0, a])
            entry[0] += each.get(like, 1)
    rest = {like: [round(n), a] for like, (n, a) in rest.items()}
    alike = [(a, storages.get(a) or (watched[a][1], 0)) for a in counts if a in sampled]
    share_by(rest, counts, alike, lambda like: like)
    share_by(rest, counts, alike, lambda like: like[0])
    share_by(rest, counts, [(a, (watched[a][1], 0)) for a in counts if watched[a][0] in growing], lambda like: like[0])
    share_by(rest, counts, [(a, like) for a, like in alike if counts[a] == 1], lambda like: like[0].bit_length())
    left = {}
    for (size, _), (n, a) in rest.items():
        entry = left.setdefault(size, [0, a])
        entry[0] += n
    weigh(left, counts, [a for a, _ in alike], watched)
    return counts, left


def weigh(rest, counts, sampled, watched):
    """Has each of the sampled stand for its weight where fewer of its stack were counted than chance leaves. What others of its
    size were given beyond themselves is taken from them for that, since all of the size were counted."""
    stacks, left = collections.defaultdict(list), collections.Counter()
    for size, (n, _) in rest.items():
        left[size.bit_length()] += n
    for a in sampled:
        stacks[watched[a][0]].append(a)
    weighed, more = set(), collections.Counter()
    for stack, group in stacks.items():
        drawn = [a for a in group if watched[a][3] > 1]  # the others were watched on purpose, and chance had left them out
        births = {watched[a][4] for a in drawn}
        seen = sum(counts[a] for a in group) + sum(left[n] for n in {watched[a][1].bit_length() for a in group})
        if drawn and unlikely(len(births), seen / len(drawn), sum(watched[a][3] for a in drawn) / len(drawn)):
            weighed.add(stack)
            for a in group:
                more[watched[a][1]] += watched[a][3] - counts[a]
                counts[a] = watched[a][3]
    for size, n in more.items():
        others = [a for a in counts if counts[a] > 1 and watched[a][1] == size and watched[a][0] not in weighed]
        beyond = sum(counts[a] - 1 for a in others)
        kept = given = 0
        for a in others:  # in proportion, without losing any to rounding
            kept += counts[a] - 1
            upto = max(0, beyond - n) * kept // beyond
            counts[a], given = 1 + upto - given, upto


def unlikely(births, seen, weight):
    """Whether, of seen for each of so many births, chance had these alone be watched, one in weight of all: Chernoff's
    bound."""
    if seen > FEW * weight:
        return False
    far = math.log(weight / seen) / seen
    if seen > 1:
        far += (1 - 1 / seen) * math.log((1 - 1 / seen) / (1 - 1 / weight))
    return births * seen * far > -math.log(DOUBTFUL)


def share_by(rest, counts, among, likeness):
    """Takes out of rest what is like one of those among which it is shared evenly."""
    groups, pieces = collections.defaultdict(list), collections.Counter()
    for a, like in among:
        groups[likeness(like)].append(a)
    for like in list(rest):
        if likeness(like) in groups:
            pieces[likeness(like)] += rest.pop(like)[0]
    for like, n in pieces.items():
        group, given = groups[like], 0
        for i, a in enumerate(group, 1):
            upto = n * i // len(group)
            counts[a] += upto - given
            given = upto
