"""How many tensors live, where only some of the steps that made them were watched.

Python's collector knows every tensor that the program has a handle of. So of each size the storages
that nobody watched are counted one by one, and shared out among the stacks that were seen to make
storages of that size. What only autograd's graph holds is not among them.
"""

import collections
import contextlib
import gc

from ._handlers import raised
from ._objects import of_types

# Tensors that are looked into at most; of more, each so many-th.
MOST = 20_000


def has_memory(storage):
    """Whether a storage's memory is PyTorch's, or shared by processes, as a loader's workers hand on their batches;
    what NumPy owns is not."""
    return storage.resizable() or storage.is_shared()


def unasked(torch):
    """A context in which tensors do not ask the program's subclasses and modes how to answer."""
    guard = getattr(getattr(torch, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
    return guard()


def handled(torch):
    """The live storages on the CPU that a tensor of the program's has, by address: their bytes; and the number of
    tensors for which each of those that were looked into stands. Tensors of subclasses are left out: to ask them
    may call the program."""
    kinds = torch.Tensor, torch.nn.Parameter
    # Every object refers to its type. To go through all objects for theirs takes half as long as to list them.
    tensors = of_types(kinds, gc.get_referrers, *kinds)
    each = -(-len(tensors) // MOST) or 1
    storages = {}
    for t in tensors[::each]:
        try:
            if t.is_cpu:
                s = t.untyped_storage()
                if has_memory(s):
                    storages[s._cdata] = s.nbytes()
        except Exception as e:
            if raised(e):
                raise
            # It has none: sparse, or of a transformation.
    return storages, each


def share_out(storages, each, watched, sampled, growing):
    """Shares out what is in storages and not among the watched, {address: [stack, bytes, …]}. Where not all
    tensors were looked into, one of them stands for each.

    Sampled are the addresses of those that came when not all was watched, and growing the stacks that
    have made storages at several times. Returns how many each address stands for, itself among them,
    and what is left of each size: {bytes: [number, address of one]}."""
    counts = {a: 1 for a in watched if each > 1 or a in storages}
    rest = {}
    for a, size in storages.items():
        if a not in watched and size:
            entry = rest.setdefault(size, [0, a])
            entry[0] += each
    alike = [(a, watched[a][1]) for a in counts if a in sampled]
    share_by(rest, counts, alike, int)
    share_by(rest, counts, [(a, watched[a][1]) for a in counts if watched[a][0] in growing], int)
    share_by(rest, counts, [(a, size) for a, size in alike if counts[a] == 1], int.bit_length)
    return counts, rest


def share_by(rest, counts, among, likeness):
    """Takes out of rest what is like a size of those among which it is shared evenly."""
    groups, pieces = collections.defaultdict(list), collections.Counter()
    for a, size in among:
        groups[likeness(size)].append(a)
    for size in list(rest):
        if likeness(size) in groups:
            pieces[likeness(size)] += rest.pop(size)[0]
    for like, n in pieces.items():
        group, given = groups[like], 0
        for i, a in enumerate(group, 1):
            upto = n * i // len(group)
            counts[a] += upto - given
            given = upto
