"""The program's own code, and which of its lines ran. From this, `memdiag verify` knows whether a run after a fix reached the line that
leaked, or whether its code changed.

For some steps, Python calls us for each function that is called, and for each line of the program's own functions.
"""

import _tracemalloc
import importlib.machinery
import sys
import types
import zlib
from _thread import get_ident

from ._budget import Budget
from ._clock import SLOWS, clock, read, work
from ._compiled import compiles
from ._handlers import raised
from ._length import forget
from ._passes import OURS
from ._real import open, os, time
from ._roots import is_programs_file
from ._ticks import imports
from ._tracing import Suspended, trace

# Calls and lines that may be watched: a number at the start, plus so many per second. One costs half a microsecond.
ALLOWANCE, A_SECOND = 20_000, 2_000
# How many of these one step may take; and how many lines one call of a function, since it may loop.
A_STEP, A_CALL = 8_000, 400
# Libraries' code is slower meanwhile. That may cost seconds at the start, plus a share of the time. If no step ends the watching, so many
# seconds of it end it.
SLOWER, SLOWER_SHARE, LONG = 0.1, 0.01, 0.02
# READING: seconds that reading the code may take. FILES: files that are reported, at most. A file with over FUNCTIONS functions is left
# out.
READING, FILES, FUNCTIONS = 0.3, 400, 1_000
# The folder of sitecustomize, beside the agent.
HERE = os.path.dirname(OURS)
# A file that changed after this time is not the one that runs.
BEGUN = time.time()


class Call:
    """The trace function of one call whose lines are watched. A closure would be a reference cycle, and its memory would count as the
    program's until a collection."""

    __slots__ = "code", "lines", "left"

    def __init__(self, code, lines):
        self.code, self.lines, self.left = code, lines, A_CALL

    def __call__(self, frame, event, arg):
        if event == "line":
            self.lines.add(frame.f_lineno)
            self.code.events += 1
            self.left -= 1
            if self.left <= 0 or not self.code.on:
                frame.f_trace = None  # Python would go on to call what returns None
                self.code.libraries = True  # what is not watched runs slower, too
                return None
        elif event == "return":
            self.code.suspended.add(frame)
        return self


class Code:
    def __init__(self, agent):
        self.agent = agent
        self.on = False
        self.events = self.spent = self.looks = 0
        self.slower = Budget(agent, SLOWER, SLOWER_SHARE)
        self.clock, self.began, self.libraries = None, 0.0, False  # of the thread; and whether functions of libraries run
        self.thread = None  # the thread that is watched
        self.suspended = Suspended()
        self.own = {}  # by id of a code object: the object and its lines seen in this step; None if it is not the program's
        # Trace functions that Python may be about to call; see Passes.
        self.on_call, self.released = self.call, []
        self.seen = {}  # by file and function: in how many steps each line ran; lines count from the function's first
        self.texts, self.contents, self.modules = {}, {}, 0
        self.script = None  # the script's file; at exit, the module __main__ no longer has it

    def begin(self):
        """Watches what runs in this thread until end."""
        self.script = self.script or file_of(sys.modules.get("__main__"))
        most = ALLOWANCE + A_SECOND * self.agent.elapsed()
        if self.on or self.spent >= most or sys.gettrace() is not None or compiles() or not self.slower.affords() or _tracemalloc.is_tracing() and not self.agent.heap.tracing:
            return
        self.events = 0
        if imports(sys._getframe()):
            return
        self.thread, frame, self.libraries = get_ident(), sys._getframe(), False
        found = False
        while frame is not None:
            if self.programs(frame.f_code) is not None:
                frame.f_trace = self.tracer(frame)
                found = True
            elif not found and not frame.f_code.co_filename.startswith(OURS):
                self.libraries = True
            frame = frame.f_back
        self.on, self.clock = True, clock()
        self.began = read(self.clock)
        trace(self.on_call)

    def traced(self):
        """Seconds for which libraries' code has run slower."""
        return max(0.0, read(self.clock) - self.began) if self.on and self.libraries else 0.0

    def overdrawn(self):
        """Whether watching has gone on for long without a step to end it. Called in the agent's thread."""
        return self.on and not self.agent.stepping and self.traced() > LONG

    def leave_early(self, importing):
        """Called if overdrawn."""
        self.end()

    def stop(self):
        self.slower.spent += SLOWS * self.traced()
        self.on = False
        self.tidy()

    def tidy(self):
        """Leaves the frames as they were; not those of another thread, where a line may be running. There, tracing ends with the next call."""
        if self.thread == get_ident():
            self.leave()
            self.released = []
            for frame in self.suspended.all():
                if type(frame.f_trace) is Call:
                    self.released.append(frame.f_trace)
                    frame.f_trace = None
                if self.programs(frame.f_code) is not None:
                    forget(frame)
        self.suspended = Suspended()

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
        """The lines seen of a code object; None if it is not the program's."""
        known = self.own.get(id(code), self)
        if known is self:
            f = code.co_filename
            known = self.own[id(code)] = (code, set()) if is_programs_file(f) and not f.startswith(OURS) else None
        return known and known[1]

    def call(self, frame, event, arg):
        """sys.settrace calls this for each function that begins."""
        try:
            self.events += 1
            if self.on and not self.agent.stopped and self.events < A_STEP:
                if self.programs(frame.f_code) is not None:
                    return self.tracer(frame)
                self.libraries = True
                return None
            self.leave()
        except Exception as e:  # else it would be raised in the program
            if raised(e):
                raise
        return None

    def leave(self):
        """Stops watching for the rest of this step. end counts what was seen."""
        if sys.gettrace() == self.call:
            trace(None)

    def tracer(self, frame):
        """The function that Python calls for a frame's lines."""
        lines = self.programs(frame.f_code)
        if not lines and frame.f_lineno is not None:  # a loop's jump back to its start has no line
            lines.add(frame.f_lineno)
        return Call(self, lines)

    def about(self):
        """What is reported of each file of the program: for each function, its first line, a digest, and the lines that ran, counted from
        the first, with the number of steps in which each ran."""
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
    """The file of a module; None for a module without one, and for other objects."""
    file = object.__getattribute__(module, "__dict__").get("__file__") if isinstance(module, types.ModuleType) else None
    return file if type(file) is str else None


def code_of(file, spec, text):
    loader = getattr(spec, "loader", None)
    if type(loader) is importlib.machinery.SourceFileLoader and loader.path == file:
        return loader.get_code(loader.name)  # the compiled code is cached
    return compile(text, file, "exec", dont_inherit=True)


def collect(code, functions):
    """Adds a code object and all code objects in it. Objects of the same name, such as lambdas, share a digest."""
    name = name_of(code)
    if ":" not in name and " " not in name:
        first, before = functions.get(name, (code.co_firstlineno, 0))
        functions[name] = first, zlib.crc32(repr(essence(code)).encode("utf-8", "backslashreplace"), before)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            collect(c, functions)


def essence(code):
    """What a code object does, without its line numbers. From Python 3.13 on, the body of a class has its line in its code."""
    if "__firstlineno__" in code.co_names:
        return code.co_names
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_kwonlyargcount,
            [plain(c) for c in code.co_consts])


def plain(c):
    """A constant in a form whose repr does not depend on the order of a set."""
    if isinstance(c, types.CodeType):
        return name_of(c)
    if isinstance(c, frozenset):
        return sorted(map(repr, c))
    return [plain(x) for x in c] if isinstance(c, tuple) else c


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def spans(counts):
    return ",".join("%dx%d" % (line, n) for line, n in sorted(counts.items()))
