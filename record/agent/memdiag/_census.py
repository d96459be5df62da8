"""Counts the live tensors when only some of the steps that made them were watched.

Python's collector knows every tensor with a Python object, called handle here. So the unwatched storages of each size are counted. They
are divided among the stacks that were seen to allocate storages of that size and of the same part in autograd's graph. Storages that only the
graph holds have no handle and are not counted, except those of watched steps: a tensor that PyTorch passes to a mode has a handle from then on.
"""

import collections
import contextlib
import gc
import math
import sys
import weakref

from ._handlers import raised
from ._objects import of_types

# About how many tensors are read, if there are more. They are drawn at random, since those of one storage are often listed in a row.
MOST = 20_000
# With so many new objects it is faster to go through all objects.
YOUNG = 50_000
# Whether the collector can list young objects alone. Free-threaded Python has no generations.
GENERATIONS = getattr(sys, "_is_gil_enabled", lambda: True)()
# Steps of the bisection for the number of tensors to a storage.
HALVINGS = 30
# Storages that only the graph holds have handles only from watched steps. A stack is taken to allocate such ones if its count is at most FEW of
# what its weights predict, and the chance for so few is below DOUBTFUL.
DOUBTFUL, FEW = 0.01, 0.8
# The parts of a tensor in autograd's graph: an input, or a result.
LEAF, RESULT = 1, 2


def lender(storage):
    """The address of a storage's memory if another library owns it, such as NumPy after torch.from_numpy or torch.as_tensor. Several storages may
    lie there. 0 if it is PyTorch's, or shared by processes, like the batches of a loader's workers, or unknown. None if there is no memory."""
    resizable = getattr(storage, "resizable", None)  # from PyTorch 2.2 on
    if resizable is None or resizable() or storage.is_shared():
        return 0
    try:
        return storage.data_ptr() or None
    except RuntimeError:
        return None  # a tensor of a transformation, without data


def unasked(torch):
    """A context in which tensors do not call the program's subclasses and modes."""
    guard = getattr(getattr(torch, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
    return guard()


class Handles:
    """The program's tensors. Finding them among all Python objects takes 25 ms beside PyTorch. So those of the last census are stored as weak
    references, and only newer objects are searched, as long as that finds all: the collector has made no object old since, or there
    are as many tensors as their type has references."""

    def __init__(self):
        self.known = None  # weak references; None if the next census must go through all objects
        self.promotions, self.references = -1, 0  # at the last census

    def of(self, kinds):
        """All tensors of these types."""
        before, tensors = promotions(), None
        if self.known is not None and gc.get_count()[0] < YOUNG:
            tensors = self.remembered(kinds)
        if tensors is None:
            # Every object refers to its type. Finding the referrers of the types takes half as long as listing all objects.
            tensors = of_types(kinds, gc.get_referrers, *kinds)
        self.known = [*map(weakref.ref, tensors)] if GENERATIONS and len(tensors) <= MOST else None
        self.promotions, self.references = before, references(kinds)
        return tensors

    def remembered(self, kinds):
        """The tensors of the last census that are left, and new ones; None if these may not be all."""
        tensors = {id(t): t for t in (r() for r in self.known) if t is not None}
        gone = len(self.known) - len(tensors)
        left = len(tensors)
        for generation in 0, 1:  # in this order: an object may move from the first to the second meanwhile
            tensors.update((id(t), t) for t in of_types(kinds, gc.get_objects, generation))
        whole = promotions() == self.promotions or len(tensors) - left == references(kinds) - self.references + gone
        return list(tensors.values()) if whole else None


def promotions():
    """How often the collector may have made objects old. Old objects can only be listed with all others."""
    return sum(s["collections"] for s in gc.get_stats()[1:]) if sys.version_info < (3, 14) else math.nan


def references(kinds):
    """The number of references to types. Each object has one to its own."""
    return sum(map(sys.getrefcount, kinds))


def handled(torch, quiet=True, lent=(), handles=None, parameters=None, elsewhere=None, results=None, pinned=None):
    """The live storages that a tensor of the program has, by address: their bytes, and the part of those tensors in autograd's graph if that is
    quiet. These are storages on the CPU, and elsewhere if no allocator records them. Also returns how many storages each of a kind stands for,
    {(bytes, part): number}, which is empty if all tensors were read.
    Of storages at one place in another library's memory one is counted: that in lent, {place: address}, or else any. parameters, a set, receives
    the addresses of parameters; results, a set, the pointers of what autograd has made on a GPU. Storages in blocks of pinned, a Blocks, are left to
    its record. Tensors of subclasses are left out: reading them may call the program."""
    tensors = (handles or Handles()).of((torch.Tensor, torch.nn.Parameter))
    drawn = MOST / max(MOST, len(tensors))
    if drawn < 1:
        from random import Random  # the import takes milliseconds

        draw = Random(0).random  # our own generator: the program's random numbers stay the same
        tensors = [t for t in tensors if draw() < drawn]
    storages, lent, found = {}, dict(lent), collections.Counter()
    for t in tensors:
        try:
            if t.is_cpu or elsewhere is not None and elsewhere.of(t):
                s = t.untyped_storage()
                if type(s.nbytes()) is not int:
                    continue  # a symbol, in a graph that is being traced
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
            # It has no storage: a sparse tensor, or one of a transformation.
    if drawn == 1:
        return storages, {}
    looks, numbers = collections.Counter(), collections.Counter(storages.values())
    for a, like in storages.items():
        looks[like] += found[a]
    return storages, {like: stands(looks[like] / n, drawn) for like, n in numbers.items()}


def stands(looks, drawn):
    """How many storages one of those found stands for. looks: how often each was found on average. drawn: the share of all tensors that was read.
    The more tensors a storage has, the more often it is found again."""
    least, most = 1.0, max(1.0, looks / drawn)
    for _ in range(HALVINGS if looks > 1 else 0):
        tensors = (least + most) / 2
        if tensors * drawn / (1 - (1 - drawn) ** tensors) < looks:
            least = tensors
        else:
            most = tensors
    return looks / drawn / (least if looks > 1 else 1)


def share_out(storages, each, watched, sampled, growing):
    """Divides the storages that handled found, and that are not among the watched, {address: [stack, bytes, birth, weight, turn]}, among the stacks.
    each: how many storages one stands for, by its kind, if not all tensors were read.

    sampled: the addresses of those allocated while not all was watched. growing: the stacks that allocated storages at several times. Returns how
    many storages each address stands for, itself included, and the rest of each size: {bytes: [number, address of one]}."""
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
    """Lets each sampled storage stand for its weight if fewer of its stack were counted than chance explains. All storages of the size were counted.
    So the storages added are taken from others of the size that stand for more than themselves."""
    stacks, left = collections.defaultdict(list), collections.Counter()
    for size, (n, _) in rest.items():
        left[size.bit_length()] += n
    for a in sampled:
        stacks[watched[a][0]].append(a)
    weighed, more = set(), collections.Counter()
    for stack, group in stacks.items():
        drawn = [a for a in group if watched[a][3] > 1]  # chance did not draw the others: they were watched on purpose
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
        for a in others:  # in proportion, and rounded so that none is lost
            kept += counts[a] - 1
            upto = max(0, beyond - n) * kept // beyond
            counts[a], given = 1 + upto - given, upto


def unlikely(births, seen, weight):
    """Whether so small a count is unlikely by chance: seen storages for each of so many births, if chance draws one birth in weight. Uses
    Chernoff's bound."""
    if seen > FEW * weight:
        return False
    far = math.log(weight / seen) / seen
    if seen > 1:
        far += (1 - 1 / seen) * math.log((1 - 1 / seen) / (1 - 1 / weight))
    return births * seen * far > -math.log(DOUBTFUL)


def share_by(rest, counts, among, likeness):
    """Takes from rest what has the likeness of some of among, and divides it evenly among these."""
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
