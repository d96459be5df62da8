"""The line of the program's at which a container becomes longer.

For some steps Python calls us for each function that is called, and for each line of the program's own. What a container has
gained since the line before is that line's, with all that it called. It is watched so until it has become longer once.
"""

import _tracemalloc
import os
import sys
from functools import _lru_cache_wrapper as lru_cache_wrapper

from ._handlers import raised
from ._length import BUFFERS, LISTS, forget, reach
from ._roots import is_programs_file

# Calls and lines that may be watched: so many, and so many a second. One costs half a microsecond.
ALLOWANCE, A_SECOND = 200_000, 20_000
# Frames of a stack, and containers that are watched at a time.
DEPTH, SEVERAL = 32, 4
OURS = os.path.dirname(__file__)


class Lines:
    def __init__(self, agent, containers, key_text):
        self.agent, self.containers, self.key_text = agent, containers, key_text
        self.on = False
        self.events = self.most = 0
        self.watched, self.lengths = [], []  # containers with their objects, for a step, and their lengths
        self.at = None  # the program's innermost frame, and its line
        self.frames = []  # that ran before
        self.own = {}  # by code object, whether it is the program's

    def boundary(self):
        """A step ends, in the thread that made it, and the next begins."""
        self.end()
        wanted = [c for c in self.containers.kept if c.stack is None and c.grown][:SEVERAL]
        self.most = ALLOWANCE + A_SECOND * self.agent.elapsed()
        if wanted and self.events < self.most and not _tracemalloc.is_tracing() and sys.gettrace() is None and not compiles():
            self.begin(wanted)

    def begin(self, wanted):
        for c in wanted:
            try:
                obj = reach(c.node, self.key_text)
            except Exception as e:
                if raised(e):
                    raise
                continue  # it cannot be reached without a walk
            if id(obj) == c.node.id:
                self.watched.append((c, obj))
        self.lengths = [length(obj) for _, obj in self.watched]
        frame = sys._getframe()
        while frame is not None:
            if self.programs(frame):
                self.at = self.at or (frame, frame.f_lineno)
                self.frames.append(frame)
                frame.f_trace = self.line
            frame = frame.f_back
        self.on = True
        sys.settrace(self.call)

    def end(self):
        if not self.on:
            return
        self.on = False
        if sys.gettrace() == self.call:
            sys.settrace(None)
        for frame in self.frames:
            if frame.f_trace == self.line:
                frame.f_trace = None
            forget(frame)
        self.watched, self.lengths, self.frames, self.at = [], [], [], None
        self.own.clear()

    def programs(self, frame):
        """Whether a frame runs the program's own code."""
        code = frame.f_code
        known = self.own.get(id(code))
        if known is None:
            f = code.co_filename
            known = self.own[id(code)] = is_programs_file(f) and not f.startswith(OURS), code
        return known[0]

    def call(self, frame, event, arg):
        """What sys.settrace calls for a function that begins."""
        if not self.on or self.agent.stopped:  # another thread has ended it, or this is the child of a fork
            self.end()
            if sys.gettrace() == self.call:
                sys.settrace(None)
            return None
        return self.look(frame) if self.programs(frame) else self.count()

    def line(self, frame, event, arg):
        """The same for lines of the program's, and for what it returns from."""
        if not self.on:
            return None
        at = frame
        while event == "return" and at is not None and (at is frame or not self.programs(at)):
            at = at.f_back
        return self.look(at)

    def count(self):
        self.events += 1
        if self.events > self.most:
            self.end()

    def look(self, at):
        """Sees which container has become longer since the last line began; the next is at's. An error would be the program's."""
        try:
            self.count()
            self.compare()
            self.at = (at, at.f_lineno) if at is not None and self.on else None
        except Exception as e:
            if raised(e):
                raise
            self.end()  # the program is nearly as deep as it may go
        return self.line if self.on else None

    def compare(self):
        for i, (c, obj) in enumerate(self.watched):
            now = length(obj)
            if now > self.lengths[i] and c.stack is None and self.at is not None:
                c.stack = stack(*self.at)
            self.lengths[i] = now
        if all(c.stack for c, _ in self.watched):
            self.end()


def stack(frame, line):
    """The frames of a line of the program's that has just run, innermost first."""
    frames = []
    while frame is not None and len(frames) < DEPTH:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, line or 0))
        frame = frame.f_back
        line = frame and frame.f_lineno
    return tuple(frames)


def length(obj):
    """The items of a container, asked for without calling the program's code."""
    if type(obj) is lru_cache_wrapper:
        return obj.cache_info().currsize
    if id(type(obj)) in BUFFERS:
        return BUFFERS[id(type(obj))][1](obj)
    return next(base for base in (dict, *LISTS) if issubclass(type(obj), base)).__len__(obj)


def compiles():
    """Whether torch.compile has compiled anything: its frames are no ordinary ones."""
    return bool(getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COUNTER", 0))
