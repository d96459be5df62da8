"""Where the program calls backward. What a GPU's backward pass allocates comes from a C++ thread of autograd, and has no Python stack in
PyTorch's record. It gets the stack of the call of backward."""

import _thread
import bisect
import collections

from ._real import os, time
from ._ticks import ROOTS

# Frames of a stack; and how many different stacks are kept, at most.
DEPTH, MOST = 48, 64
# CALLS: calls whose times are kept. SIZES: sizes of blocks whose calls are kept. ONE: the share of blocks of a size that must come from one
# call.
CALLS, SIZES, ONE = 4096, 4096, 0.9
# The folder of our own files. Operators go through them at some steps only.
HERE = os.path.dirname(os.path.abspath(__spec__.origin)) + os.sep
# Events of the record that follow a request for memory.
MADE = "alloc", "oom"
# Paths of PyTorch's own files contain this.
TORCH = os.sep + "torch" + os.sep


class Backward:
    def __init__(self):
        self.stacks = {}  # by ids of code objects and places in them: the frames, and the objects, held so that no others get their ids
        self.older = None  # addresses of blocks without a stack, from when the recording began or was found ended
        self.calls = collections.deque(maxlen=CALLS)  # of each call, the time in microseconds and its key in stacks
        self.threads, self.sizes = set(), {}  # threads that call backward; by bytes requested, how many blocks came from each call
        # Whether the record has stacks of its events, and of blocks. The program may have it leave them out.
        self.listed = self.told = True
        self.looked, self.sized = 0, 0  # the times of the last look, and of the last look with a record

    def called(self, frame):
        """Records the stack of a call of backward, from a frame of PyTorch outward. The stack of a call within a backward pass, such as
        checkpoint's, ends at autograd's thread, and is left out."""
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
        """Gives blocks and events without a stack the stack of the call of backward. Exceptions keep no stack: blocks of a library's
        workspace, and what was allocated while the program had ended PyTorch's record, since anything may have allocated it."""
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
        """The frames of the last call before an event; the event's size then counts for that call. None if no call is known."""
        when, size = event.get("time_us", 0), event["size"]
        i = bisect.bisect(starts, when) - 1
        key = self.calls[i][1] if i >= 0 else None
        if key not in self.stacks:
            return None
        if when > self.sized and (size in self.sizes or len(self.sizes) < SIZES):
            self.sizes.setdefault(size, collections.Counter())[key] += 1
        return self.stacks[key][0]

    def learn(self, taken):
        """Finds out whether a record has stacks. It looks at events after the last look and before the next call of backward, since these
        come from Python's threads. A short record may have none of them."""
        until = next((t for t, _ in self.calls if t > self.looked), 0)
        new = [e for trace in taken["device_traces"] for e in trace if e["action"] == "alloc" and self.looked < e.get("time_us", 0) < until]
        if new:
            self.listed = any(told(e) for e in new)
            places = () if self.listed else {e["addr"] for e in new}
            self.told = self.listed or any(told(b) for s in taken["segments"] for b in s["blocks"] if b.get("address") in places and b["state"] != "inactive")

    def shared(self):
        """The frames that all calls of backward share; of a single call, all frames. Of several calls, these are the innermost frames if
        the program's are among them, as for a function that is called from several places; else the outermost. Also returns whether calls
        can then be told apart by their times, which needs one thread that makes them all."""
        stacks = [rows for rows, _ in self.stacks.values()]
        inner = common(stacks)
        if any(TORCH not in row["filename"] for row in inner):
            return inner, False
        return common([rows[::-1] for rows in stacks])[::-1], len(self.threads) == 1

    def of_size(self, size):
        """The frames of the call from which nearly all blocks of a size come; None if there is none. Blocks have no time, and a snapshot
        may have no record, but the same block must have the same frames in each snapshot."""
        calls = self.sizes.get(size)
        if not calls:
            return None
        (key, n), = calls.most_common()[:1]
        return self.stacks[key][0] if n >= ONE * sum(calls.values()) else None


def common(stacks):
    """The rows that all stacks have in common at their beginning."""
    out = []
    for rows in zip(*stacks):
        if any(row != rows[0] for row in rows):
            break
        out.append(rows[0])
    return out


def alone(frames):
    """Whether an allocation has no Python frame, except our dispatch mode, which autograd's thread calls."""
    return frames == [] or frames is not None and len(frames) == 1 and frames[0]["filename"].startswith(HERE)


def now():
    """Microseconds, as in the record."""
    return int(time.time() * 1e6)


def told(what):
    """Whether a block or an event has a Python stack."""
    return bool(what.get("frames")) and not alone(what["frames"])


def frames(frame):
    depth = DEPTH
    while frame is not None and depth:
        code = frame.f_code
        if not code.co_filename.startswith(HERE):
            yield {"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno}
        frame = frame.f_back
        depth -= 1
