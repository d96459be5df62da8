"""What tracemalloc's traces tell of what was made in a window: by stack, what grew from look to look."""

import os
import sys

from ._roots import is_programs_file
from ._watch import WRAPPER

# Frames of a stack that tracemalloc keeps. Each costs, at every allocation. Between a compiled graph's
# output and the line that called it PyTorch has some nine. More where this share of what grew in a window has no line of the
# program's: matplotlib has some thirty below one call.
DEPTH, TORCH_DEPTH, DEEP, CUT = 8, 16, 48, 0.2
# Of a stack that is deeper than TORCH_DEPTH these many frames of libraries, which the program called, stand for all below: a
# figure of matplotlib's is made by hundreds of stacks, of which each is seen too seldom.
CALLED = 2
# What is larger malloc has, not Python's own allocator; and all of a domain of its own, as NumPy's.
SMALL = 512

HERE = os.path.dirname(os.path.abspath(__spec__.origin))
CANARY = os.path.join(HERE, "_canary.py")  # leaks as the program would
OURS = {os.path.join(HERE, name) for name in os.listdir(HERE)}

# The module, as the program imports it once it watches a function.
WRAPPERS = "memdiag._wrapper"

NONE = (0, 0, 0, 0, 0, {})


def is_ours(stack):
    """Whether the agent itself has made what has a stack."""
    return not OURS.isdisjoint(f for f, _ in stack) and stack[0][0] != CANARY


def read(traces):
    """What has been made since the window opened and is there: by stack, as in lines, how many of malloc's are Python's objects, and of malloc's by size."""
    sizes = {}
    for stack, *found in by_stack(traces):
        if is_ours(stack):
            continue
        for of, more in zip(sizes.setdefault(shortened(stack), ([], [], [])), found):
            of.extend(more)
    return {s: [len(small), sum(small), len(large) + len(data), sum(large) + sum(data), len(large), by_bits(large + data)] for s, (small, large, data) in sizes.items()}


def by_stack(traces):
    """Each stack, with the sizes of what Python's own allocator has of it, of its objects that malloc has, and of
    data in other domains, such as NumPy's, which Python's count of blocks lacks. A stack is one tuple in all its traces: its hash, of all
    frames, is asked for once. Lists of sizes rather than sums: each new number would be traced, which costs most."""
    found = {}
    for domain, size, stack, _ in traces:
        entry = found.get(id(stack))
        if entry is None:
            entry = found[id(stack)] = without_wrappers(stack), [], [], []
        entry[3 if domain else 1 + (size > SMALL)].append(size)
    return found.values()


def without_wrappers(stack):
    """A stack without the frames of functions that stand for watched ones, which are no work of ours."""
    if WRAPPERS not in sys.modules or not any(f.endswith(WRAPPER) for f, _ in stack):
        return stack
    return tuple(f for f in stack if not f[0].endswith(WRAPPER)) or stack


def changes(found):
    """By stack, what has grown from look to look, and fallen at once, by how much blocks of malloc's have become larger, and how much more there is
    of the sizes that there are more of."""
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
    """Leaves out what lines have made beyond the blocks and bytes of malloc's of which there are more or less in all: it replaced what was
    there before the window, as a batch does where a window is shorter than a step."""
    for stack, (grown, fell, larger, stay) in changed.items():
        if grown[0] > blocks:
            grown[:2] = 0, 0
        if grown[3] > size:
            grown[3] = 0
            if stay > size:
                grown[2] = grown[4] = stay = 0
        changed[stack] = grown, fell, larger, stay


def cut_off(changed, depth):
    """Whether many new blocks of a window have stacks that were cut at so many frames, before any frame of the program."""
    grown, cut = 0, 0
    for stack, ((blocks, _, large, *_), *_) in changed.items():
        n = max(0, blocks) + (large > 0)
        grown += n
        cut += 0 if len(stack) < depth or programs_own(stack) is not None else n
    return cut > CUT * grown


def programs_own(stack):
    """The index of the innermost frame of the program's file; None where there is none. A library makes functions of texts, such as a
    named tuple's, whose file is none."""
    return next((i for i, (f, _) in enumerate(stack) if is_programs_file(f) and f != "<string>"), None)


def programs_line(stack):
    """The innermost frame of the program's; None where there is none."""
    own = programs_own(stack)
    return None if own is None else stack[own]


def shortened(stack):
    """A stack without what libraries do far below the program's innermost line; as it is where it is not deep. Wrappers are left out."""
    stack = without_wrappers(stack)
    if len(stack) <= TORCH_DEPTH:
        return stack
    own = programs_own(stack)
    if own is None:
        own = len(stack) - TORCH_DEPTH + CALLED
    return stack[max(0, own - CALLED):]


def by_bits(sizes):
    """Number and bytes of blocks by the bits of their size."""
    kinds = {}
    for bits in set(map(int.bit_length, sizes)):
        of = [n for n in sizes if n.bit_length() == bits]
        kinds[bits] = len(of), sum(of)
    return kinds


def stays(looks):
    """Bytes by which the sizes have grown that have more blocks."""
    grown = 0
    for bits in set().union(*looks):
        numbers, held = zip(*(look.get(bits, (0, 0)) for look in looks))
        if rise(*numbers) > 0:
            grown += max(0, rise(*held))
    return grown


def rise(a, b, c, d):
    """By how much the two later ones are above the two earlier ones."""
    return min(c, d) - max(a, b)
