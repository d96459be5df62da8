"""Where the program calls backward. What a GPU's backward allocates comes from a thread of autograd's, in C++, and has no stack of
Python's in PyTorch's record: it gets that of the call."""

import _thread
import bisect
import collections
import os
import time

from ._ticks import ROOTS

# Frames of a stack, and stacks that are told apart.
DEPTH, MOST = 48, 64
# Calls whose times are known; sizes whose calls are; and which part of what has a size has to come from one call.
CALLS, SIZES, ONE = 4096, 4096, 0.9
# Where our own files are, through which operators go at some steps only.
HERE = os.path.dirname(os.path.abspath(__spec__.origin)) + os.sep
# Events of the record that a call for memory is behind.
MADE = "alloc", "oom"
# What PyTorch's own files have in their path.
TORCH = os.sep + "torch" + os.sep


class Backward:
    def __init__(self):
        self.stacks = {}  # by ids of code objects and the places in them: frames, and the objects, which keep the ids their own
        self.older = None  # addresses of the blocks without a stack that were there when the recording began, or when it was found ended
        self.calls = collections.deque(maxlen=CALLS)  # of each the time in microseconds, and its key among the stacks
        self.threads, self.sizes = set(), {}  # that call; and by the bytes asked for, how many came from each call
        # Whether the record has stacks of what it lists, and of blocks, which the program may have it leave out.
        self.listed = self.told = True
        self.looked, self.sized = 0, 0  # the times of the last look, and of the last one with a record

    def called(self, frame):
        """Takes note of the stack of a call of backward, from one of PyTorch's frames on. One within a backward, as of a checkpoint,
        has no more than what that has called."""
        key, codes, f = [], [], frame
        while f is not None and len(codes) < DEPTH:
            codes.append(f.f_code)
            key.append(id(f.f_code))
            key.append(f.f_lasti)
            f = f.f_back
        key = tuple(key)
        self.calls.append((now(), key))
        self.threads.add(_thread.get_ident())
        if key not in self.stacks and len(self.stacks) < MOST and (f is not None or codes[-1].co_name in ROOTS):
            self.stacks[key] = list(frames(frame)), codes

    def complete(self, taken, recorded=True, workspace=0):
        """Gives a snapshot's blocks and events without a stack that of the call of backward, but for blocks that a library is given to
        work in. What came while the program had ended PyTorch's record has none either, whoever allocated it."""
        self.learn(taken)
        bare = [b for s in taken["segments"] for b in s["blocks"]
                if alone(b.get("frames")) and "address" in b and b["state"] != "inactive" and b.get("requested_size") != workspace]
        if self.older is None or not recorded or not self.told:
            self.older = {b["address"] for b in bare}
        else:
            self.older.intersection_update([b["address"] for b in bare])
        shared, apart = self.shared()
        starts = [t for t, _ in self.calls] if apart else ()
        for e in (e for trace in taken["device_traces"] for e in trace) if self.listed else ():
            if e["action"] in MADE and alone(e.get("frames")) and e["size"] != workspace:
                e["frames"] = self.at(starts, e) or shared or e["frames"]
        self.looked = now()
        self.sized = self.looked if any(taken["device_traces"]) else self.sized
        for b in bare:
            if b["address"] not in self.older:
                b["frames"] = apart and self.of_size(b.get("requested_size")) or shared or b["frames"]

    def at(self, starts, event):
        """The frames of the call that was the last one at an event, whose size is that call's from now on; None where no call is known."""
        when, size = event.get("time_us", 0), event["size"]
        i = bisect.bisect(starts, when) - 1
        key = self.calls[i][1] if i >= 0 else None
        if key not in self.stacks:
            return None
        if when > self.sized and (size in self.sizes or len(self.sizes) < SIZES):
            self.sizes.setdefault(size, collections.Counter())[key] += 1
        return self.stacks[key][0]

    def learn(self, taken):
        """Takes from a record whether it has stacks. What came after the last look, and before the next call of backward, Python's threads
        have allocated; a record may be too short to have any of that."""
        until = next((t for t, _ in self.calls if t > self.looked), 0)
        new = [e for trace in taken["device_traces"] for e in trace if e["action"] == "alloc" and self.looked < e.get("time_us", 0) < until]
        if new:
            self.listed = any(told(e) for e in new)
            places = () if self.listed else {e["addr"] for e in new}
            self.told = self.listed or any(told(b) for s in taken["segments"] for b in s["blocks"] if b.get("address") in places and b["state"] != "inactive")

    def shared(self):
        """The frames that all calls of backward share: all of them where there is one. Of several, the innermost if the program's are
        among them, as of a function that is called from several places; else the outermost. And whether the calls are told apart then, by
        the times at which one thread makes them."""
        stacks = [rows for rows, _ in self.stacks.values()]
        inner = common(stacks)
        if any(TORCH not in row["filename"] for row in inner):
            return inner, False
        return common([rows[::-1] for rows in stacks])[::-1], len(self.threads) == 1

    def of_size(self, size):
        """The frames of the call from which nearly all of a size come; None where there is none. A block has no time, and a snapshot
        may have no record: the same block is to have the same frames in each."""
        calls = self.sizes.get(size)
        if not calls:
            return None
        (key, n), = calls.most_common(1)
        return self.stacks[key][0] if n >= ONE * sum(calls.values()) else None


def common(stacks):
    """The rows that stacks have in common, from the first one on."""
    out = []
    for rows in zip(*stacks):
        if any(row != rows[0] for row in rows):
            break
        out.append(rows[0])
    return out


def alone(frames):
    """Whether what allocated had no frame of Python's: our dispatch mode alone is one that autograd's thread calls."""
    return frames == [] or frames is not None and len(frames) == 1 and frames[0]["filename"].startswith(HERE)


def now():
    """Microseconds, as the record has them."""
    return int(time.time() * 1e6)


def told(what):
    """Whether a block or an event has a stack of Python's."""
    return bool(what.get("frames")) and not alone(what["frames"])


def frames(frame):
    depth = DEPTH
    while frame is not None and depth:
        code = frame.f_code
        if not code.co_filename.startswith(HERE):
            yield {"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno}
        frame = frame.f_back
        depth -= 1
