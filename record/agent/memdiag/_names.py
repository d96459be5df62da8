"""Names of the functions of lines. tracemalloc only gives a line's file and number.

They come from code objects that exist already: of the modules that are running, with everything nested in them, which covers the whole
script; and of what modules define. Nothing is compiled, since that may print warnings. Compiled files are not read, and all objects are not
searched: each takes longer than a snapshot may.
"""

import sys
import types

from ._frames import back, current
from ._length import contents, members


class Names:
    def __init__(self):
        self.names = {}  # (file, line): name
        self.modules = {}  # by file; only while a snapshot is taken
        self.codes = {}  # by file; only while a snapshot is taken

    def of(self, file, line):
        """The function of a line; "" if that is not known. The first answer is kept."""
        name = self.names.get((file, line))
        if name is None:
            if not self.modules:
                self.look()
            if file not in self.codes:
                self.codes[file] = set(defined(self.modules.get(file), file))
            codes = self.codes[file]
            # A line outside of functions is the module's. The module's code is freed after its import.
            name = self.names[file, line] = function(codes, line) or ("<module>" if codes else "")
        return name

    def look(self):
        self.modules = {contents(m).get("__file__"): m for m in list(sys.modules.values()) if issubclass(type(m), types.ModuleType)}
        for frame in list(current().values()):
            while frame is not None:
                if frame.f_code.co_name == "<module>":
                    self.codes[frame.f_code.co_filename] = {frame.f_code}
                frame = back(frame)

    def forget(self):
        """Drops references to code objects, which the program may free."""
        self.modules, self.codes = {}, {}


def defined(module, file):
    """The code of a file's functions and methods; of a wrapper, also of the function that it wraps."""
    level = list(contents(module).values()) if module is not None else []
    for c in [c for c in level if issubclass(type(c), type)]:
        level += members(c).values()
    for f in level:
        if type(f) is staticmethod or type(f) is classmethod:
            f = f.__func__
        elif type(f) is property:
            f = f.fget
        while type(f) is types.FunctionType:
            if f.__code__.co_filename == file:
                yield f.__code__
            f = f.__dict__.get("__wrapped__")


def function(codes, line):
    """The name of the outermost function with a line, among code objects and those nested in them; None if there is none."""
    codes = [c for c in codes if c.co_firstlineno <= line]
    for c in codes:
        if any(line == n for _, _, n in c.co_lines()):
            return getattr(c, "co_qualname", c.co_name)
    inner = [i for c in codes for i in c.co_consts if type(i) is types.CodeType]
    return function(inner, line) if inner else None
