"""Names of the functions that lines belong to: tracemalloc tells a line's file and number only.

They come from code that is there already: of the modules that run, with all that is nested in them, which is the
whole script, and of all functions that exist. Nothing is compiled, since that may print warnings, and no file is
read: to take in those of NumPy took a second.
"""

import gc
import sys
import types


class Names:
    def __init__(self):
        self.names = {}  # (file, line): name
        self.codes = {}  # by file, while a snapshot is taken

    def of(self, file, line):
        """The function of a line; "" where that is not known. It stays what it was said to be once."""
        name = self.names.get((file, line))
        if name is None:
            if not self.codes:
                self.look()
            codes = self.codes.get(file, ())
            # A line of no function is the module's, whose code is gone when it has been imported.
            name = self.names[file, line] = function(codes, line) or ("<module>" if codes else "")
        return name

    def look(self):
        for o in gc.get_objects():
            if type(o) is types.FunctionType:
                self.codes.setdefault(o.__code__.co_filename, set()).add(o.__code__)
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                if frame.f_code.co_name == "<module>":
                    self.codes[frame.f_code.co_filename] = {frame.f_code}
                frame = frame.f_back

    def forget(self):
        """Lets go of the code, which the program may do as well."""
        self.codes.clear()


def function(codes, line):
    """The outermost of some functions and what is nested in them that has a line; None where none has."""
    codes = [c for c in codes if c.co_firstlineno <= line]
    for c in codes:
        if any(line == n for _, _, n in c.co_lines()):
            return getattr(c, "co_qualname", c.co_name)
    inner = [i for c in codes for i in c.co_consts if type(i) is types.CodeType]
    return function(inner, line) if inner else None
