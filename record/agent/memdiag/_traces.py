"""Reads tracemalloc's traces of a window: what was allocated, by stack, and what grew from look to look."""

import sys

from ._real import os
from ._roots import is_programs_file
from ._watch import WRAPPER

# Frames of a stack that tracemalloc stores; each costs time at every allocation. TORCH_DEPTH: PyTorch has some nine between a compiled
# graph's output and the line that called it. DEEP: used once stacks without a line of the program's have more than CUT of the growth in a
# window: matplotlib has some thirty below one call.
DEPTH, TORCH_DEPTH, DEEP, CUT = 8, 16, 48, 0.2
# If a stack is deeper than TORCH_DEPTH, so many frames of libraries below the program's line stand for all: hundreds of stacks make a figure
# of matplotlib's, and each is seen too seldom.
CALLED = 2
# Larger objects are malloc's, not Python's own allocator's. So is all data in a domain of its own, such as NumPy's.
SMALL = 512

HERE = os.path.dirname(os.path.abspath(__spec__.origin))
CANARY = os.path.join(HERE, "_canary.py")  # leaks on purpose, like a program: it is not ours
OURS = {os.path.join(HERE, name) for name in os.listdir(HERE)}

# The module of our wrappers. It is imported once the program watches a function.
WRAPPERS = "memdiag._wrapper"

NONE = (0, 0, 0, 0, 0, {})


def is_ours(stack):
    """Whether the agent itself has allocated what has this stack."""
    return not OURS.isdisjoint(f for f, _ in stack) and stack[0][0] != CANARY


def read(traces):
    """By stack, what was allocated since the window opened and is still there: number and bytes in Python's own allocator, number and bytes in
    malloc, how many of malloc's are Python objects, and malloc's by size."""
    sizes = {}
    for stack, *found in by_stack(traces):
        if is_ours(stack):
            continue
        for of, more in zip(sizes.setdefault(shortened(stack), ([], [], [])), found):
            of.extend(more)
    return {s: [len(small), sum(small), len(large) + len(data), sum(large) + sum(data), len(large), by_bits(large + data)] for s, (small, large, data) in sizes.items()}


def by_stack(traces):
    """Each stack, with the sizes of its blocks of Python's own allocator, of its Python objects in malloc, and of its data in other domains, such as
    NumPy's, which Python's count of blocks lacks. All traces of a stack have the same tuple, so it is found by id: its hash reads all frames. The
    sizes are lists and not sums: each new number would be traced, which costs most."""
    found = {}
    for domain, size, stack, _ in traces:
        entry = found.get(id(stack))
        if entry is None:
            entry = found[id(stack)] = without_wrappers(stack), [], [], []
        entry[3 if domain else 1 + (size > SMALL)].append(size)
    return found.values()


def without_wrappers(stack):
    """A stack without the frames of our wrappers around watched functions: the work in them is not ours."""
    if WRAPPERS not in sys.modules or not any(f.endswith(WRAPPER) for f, _ in stack):
        return stack
    return tuple(f for f in stack if not f[0].endswith(WRAPPER)) or stack


def changes(found):
    """By stack: what has grown from look to look; the largest fall from one look to the next; by how much malloc's blocks have become larger; and how
    many bytes more there are of sizes with more blocks."""
    changed = {}
    for stack in set().union(*found):
        *looks, kinds = zip(*(look.get(stack, NONE) for look in found))
        grown = [rise(*n) for n in looks]
        fell = [max(a - b, b - c, c - d, 0) for a, b, c, d in looks]
        each = [held / n for n, held in zip(*looks[2:4]) if n]
        larger = max(0, rise(*each)) - max(0, rise(*each[::-1])) if len(each) == len(found) else 0
        changed[stack] = grown, fell, larger, stays(kinds)
    return changed


def leave_out(changed, blocks, size):
    """Leaves out the growth of lines that grew by more blocks, or more bytes of malloc, than the whole heap changed by. They replaced what was there
    before the window, such as a batch in a window shorter than a step."""
    for stack, (grown, fell, larger, stay) in changed.items():
        if grown[0] > blocks:
            grown[:2] = 0, 0
        if grown[3] > size:
            grown[3] = 0
            if stay > size:
                grown[2] = grown[4] = stay = 0
        changed[stack] = grown, fell, larger, stay


def cut_off(changed, depth):
    """Whether many new blocks of a window have stacks that were cut off before any frame of the program; depth: frames of a stack."""
    grown, cut = 0, 0
    for stack, ((blocks, _, large, *_), *_) in changed.items():
        n = max(0, blocks) + (large > 0)
        grown += n
        cut += 0 if len(stack) < depth or programs_own(stack) is not None else n
    return cut > CUT * grown


def programs_own(stack):
    """The index of the innermost frame of the program's; None if there is none. A library also creates functions from text, such as those of a
    named tuple, whose file is "<string>": they are not the program's."""
    return next((i for i, (f, _) in enumerate(stack) if is_programs_file(f) and f != "<string>"), None)


def programs_line(stack):
    """The innermost frame of the program's; None if there is none."""
    own = programs_own(stack)
    return None if own is None else stack[own]


def shortened(stack):
    """A stack without wrappers, and without what libraries do far below the program's innermost line. A stack that is not deep stays."""
    stack = without_wrappers(stack)
    if len(stack) <= TORCH_DEPTH:
        return stack
    own = programs_own(stack)
    if own is None:
        own = len(stack) - TORCH_DEPTH + CALLED
    return stack[max(0, own - CALLED):]


def by_bits(sizes):
    """Number and bytes of blocks, by the number of bits of their size."""
    kinds = {}
    for bits in set(map(int.bit_length, sizes)):
        of = [n for n in sizes if n.bit_length() == bits]
        kinds[bits] = len(of), sum(of)
    return kinds


def stays(looks):
    """Growth in bytes of those sizes that have more blocks."""
    grown = 0
    for bits in set().union(*looks):
        numbers, held = zip(*(look.get(bits, (0, 0)) for look in looks))
        if rise(*numbers) > 0:
            grown += max(0, rise(*held))
    return grown


def rise(a, b, c, d):
    """By how much the two later looks are above the two earlier ones."""
    return min(c, d) - max(a, b)
