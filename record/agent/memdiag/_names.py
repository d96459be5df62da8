"""Names of the functions that lines belong to: tracemalloc tells a line's file and number only.

They come from code that is there already: of the modules that run, with all that is nested in them, which is the
whole script, and of what modules define. Nothing is compiled, since that may print warnings, and neither are
compiled files read nor all objects gone through: each takes longer than a snapshot may.
"""

import sys
import types

from ._length import contents, members


class Names:
    def __init__(self):
        self.names = {}  # (file, line): name
        self.modules = {}  # by file, while a snapshot is taken
        self.codes = {}  # by file, likewise

    def of(self, file, line):
        """The function of a line; "" where that is not known. It stays what it was said to be once."""
        name = self.names.get((file, line))
        if name is None:
            if not self.modules:
                self.look()
            if file not in self.codes:
                self.codes[file] = set(defined(self.modules.get(file), file))
            codes = self.codes[file]
            # A line of no function is the module's, whose code is gone when it has been imported.
            name = self.names[file, line] = function(codes, line) or ("<module>" if codes else "")
        return name

    def look(self):
        self.modules = {contents(m).get("__file__"): m for m in list(sys.modules.values()) if issubclass(type(m), types.ModuleType)}
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                if frame.f_code.co_name == "<module>":
                    self.codes[frame.f_code.co_filename] = {frame.f_code}
                frame = frame.f_back

    def forget(self):
        """Lets go of the code, which the program may do as well."""
        self.modules, self.codes = {}, {}


def defined(module, file):
    """The code of a file's functions and methods; of what wraps one, of that which is wrapped."""
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
    """The outermost of some functions and what is nested in them that has a line; None where none has."""
    codes = [c for c in codes if c.co_firstlineno <= line]
    for c in codes:
        if any(line == n for _, _, n in c.co_lines()):
            return getattr(c, "co_qualname", c.co_name)
    inner = [i for c in codes for i in c.co_consts if type(i) is types.CodeType]
    return function(inner, line) if inner else None
