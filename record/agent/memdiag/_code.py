"""What the program's own code is, and which lines of it ran: so `memdiag verify` knows whether a run after a fix came to the
line that leaked, or whether its code changed.

For some steps Python calls us for each function that is called, and for each line of the program's own.
"""

import _tracemalloc
import importlib.machinery
import os
import sys
import time
import types
import zlib

from ._budget import Budget
from ._clock import SLOWS, clock, read, work
from ._handlers import raised
from ._length import forget
from ._passes import OURS, compiles
from ._roots import is_programs_file
from ._ticks import imports

# Calls and lines that may be watched: so many, and so many a second. One costs half a microsecond.
ALLOWANCE, A_SECOND = 20_000, 2_000
# Of these one step may take so many; and a call of a function so many of its lines, as a loop has.
A_STEP, A_CALL = 8_000, 400
# What it may cost that libraries' code takes longer meanwhile: so many seconds, and this share of the time. Where no step ends it, so
# many seconds of theirs are enough.
SLOWER, SLOWER_SHARE, LONG = 0.1, 0.01, 0.02
# Seconds that it may take to read the code, and files and functions of one that are told.
READING, FILES, FUNCTIONS = 0.3, 400, 1_000
# Where sitecustomize is, beside the agent.
HERE = os.path.dirname(OURS)
# Files that were changed since then are not those that run.
BEGUN = time.time()


class Call:
    """A call of a function whose lines are watched. A function within another would hold itself, and what waits for a collection
    would be counted as the program's."""

    __slots__ = "code", "lines", "left"

    def __init__(self, code, lines):
        self.code, self.lines, self.left = code, lines, A_CALL

    def __call__(self, frame, event, arg):
        if event == "line":
            self.lines.add(frame.f_lineno)
            self.code.events += 1
            self.left -= 1
            if self.left == 0 or not self.code.on:
                return None
        return self


class Code:
    def __init__(self, agent):
        self.agent = agent
        self.on = False
        self.events = self.spent = self.looks = 0
        self.slower = Budget(agent, SLOWER, SLOWER_SHARE)
        self.clock, self.began, self.libraries = None, 0.0, False  # of the thread, and whether others' functions run
        self.frames = []  # that ran before
        self.own = {}  # by code object's id: the object, and the lines seen in this step; None for what is not the program's
        self.seen = {}  # by file and function: in how many steps each line was seen, counted from its first
        self.texts, self.contents, self.modules = {}, {}, 0
        self.script = None  # its file, which the module __main__ no longer has at exit

    def begin(self):
        """Watches what runs in this thread up to the next call of end."""
        self.script = self.script or file_of(sys.modules.get("__main__"))
        most = ALLOWANCE + A_SECOND * self.agent.elapsed()
        if self.on or self.spent >= most or sys.gettrace() is not None or compiles() or not self.slower.affords() or _tracemalloc.is_tracing() and not self.agent.heap.tracing:
            return
        self.events = 0
        if imports(sys._getframe()):
            return
        frame, self.libraries = sys._getframe(), False
        while frame is not None:
            if self.programs(frame.f_code) is not None:
                frame.f_trace = self.tracer(frame)
                self.frames.append(frame)
            elif not self.frames and not frame.f_code.co_filename.startswith(OURS):
                self.libraries = True
            frame = frame.f_back
        self.on, self.clock = True, clock()
        self.began = read(self.clock)
        sys.settrace(self.call)

    def traced(self):
        """Seconds for which libraries' code has been slower."""
        return max(0.0, read(self.clock) - self.began) if self.on and self.libraries else 0.0

    def overdrawn(self):
        """Whether what no step ends goes on for long. Called in the agent's thread."""
        return self.on and not self.agent.stepping and self.traced() > LONG

    def leave_early(self, importing):
        """Called where it is overdrawn."""
        self.end()

    def stop(self):
        self.slower.spent += SLOWS * self.traced()
        self.on = False
        self.leave()
        for frame in self.frames:
            frame.f_trace = None
            forget(frame)
        self.frames = []

    def end(self):
        if not self.on:
            return
        self.stop()
        self.spent += self.events
        self.looks += 1
        for code, lines in filter(None, self.own.values()):
            if lines:
                counts = self.seen.setdefault((code.co_filename, name_of(code)), {})
                for line in lines:
                    counts[line - code.co_firstlineno] = counts.get(line - code.co_firstlineno, 0) + 1
        self.own.clear()

    def programs(self, code):
        """The lines seen of a code object; None where it is not the program's."""
        known = self.own.get(id(code), self)
        if known is self:
            f = code.co_filename
            known = self.own[id(code)] = (code, set()) if is_programs_file(f) and not f.startswith(OURS) else None
        return known and known[1]

    def call(self, frame, event, arg):
        """What sys.settrace calls for a function that begins."""
        try:
            self.events += 1
            if self.on and not self.agent.stopped and self.events < A_STEP:
                if self.programs(frame.f_code) is not None:
                    return self.tracer(frame)
                self.libraries = True
                return None
            self.leave()
        except Exception as e:  # it would be the program's
            if raised(e):
                raise
        return None

    def leave(self):
        """No more of this step; what was seen is counted when it ends."""
        if sys.gettrace() == self.call:
            sys.settrace(None)

    def tracer(self, frame):
        """What Python calls for a frame's lines."""
        lines = self.programs(frame.f_code)
        if not lines and frame.f_lineno is not None:  # a loop's jump back to its beginning has no line
            lines.add(frame.f_lineno)
        return Call(self, lines)

    def about(self):
        """What is told of each file of the program's: its functions, each with its first line, a digest, and the lines that
        ran, counted from there, with the number of steps in which they did."""
        if len(sys.modules) != self.modules:
            self.modules = len(sys.modules)
            self.read()
        files = {}
        for file, functions in self.texts.items():
            files[file] = " ".join("%s:%d:%x:%s" % (name, first, digest, spans(self.seen.get((file, name), {}))) for name, (first, digest) in functions.items())
        return {"code": {"python": "%d.%d" % sys.version_info[:2], "looks": self.looks, "files": files, "contents": self.contents}} if files else {}

    def read(self):
        began = work()
        for module in list(sys.modules.values()):
            if work() - began > READING or len(self.texts) >= FILES:
                return
            file = file_of(module) or module is sys.modules.get("__main__") and self.script
            if not file or file in self.texts or not file.endswith(".py") or not is_programs_file(file) or file.startswith(HERE):
                continue
            try:
                if os.stat(file).st_mtime > BEGUN:
                    continue
                functions = {}
                with open(file, "rb") as f:
                    text = f.read()
                collect(code_of(file, object.__getattribute__(module, "__dict__").get("__spec__"), text), functions)
            except (OSError, SyntaxError, ValueError, ImportError):
                continue
            if len(functions) <= FUNCTIONS:
                self.texts[file], self.contents[file] = functions, "%d:%08x" % (len(text), zlib.crc32(text))


def file_of(module):
    """None for what is no module, and for one without a file."""
    file = object.__getattribute__(module, "__dict__").get("__file__") if isinstance(module, types.ModuleType) else None
    return file if type(file) is str else None


def code_of(file, spec, text):
    loader = getattr(spec, "loader", None)
    if type(loader) is importlib.machinery.SourceFileLoader and loader.path == file:
        return loader.get_code(loader.name)  # which has it compiled already
    return compile(text, file, "exec", dont_inherit=True)


def collect(code, functions):
    """Adds a code object and all within it. Those of one name, as lambdas, have a digest together."""
    name = name_of(code)
    if ":" not in name and " " not in name:
        first, before = functions.get(name, (code.co_firstlineno, 0))
        functions[name] = first, zlib.crc32(repr(essence(code)).encode("utf-8", "backslashreplace"), before)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            collect(c, functions)


def essence(code):
    """What a code object does, whichever its lines are. The body of a class has its line in it, from Python 3.13 on."""
    if "__firstlineno__" in code.co_names:
        return code.co_names
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_kwonlyargcount,
            [plain(c) for c in code.co_consts])


def plain(c):
    """A constant as repr tells it, whichever order a set has."""
    if isinstance(c, types.CodeType):
        return name_of(c)
    if isinstance(c, frozenset):
        return sorted(map(repr, c))
    return [plain(x) for x in c] if isinstance(c, tuple) else c


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def spans(counts):
    return ",".join("%dx%d" % (line, n) for line, n in sorted(counts.items()))
