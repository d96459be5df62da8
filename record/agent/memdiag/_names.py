"""Names of the functions that lines belong to: tracemalloc tells a line's file and number only.

They come from code objects that are there already: those that run, with all that is nested in
them, which is the whole script, and the compiled files of imported modules. Nothing is compiled,
since that may print warnings.
"""

import importlib.util
import marshal
import sys

# The largest compiled file that is looked into.
LARGEST = 1 << 20


class Names:
    def __init__(self):
        self.lines = {}  # (file, line): name
        self.files = set()  # that were looked into

    def running(self):
        """Takes in the code of all frames that run."""
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                code = frame.f_code
                if code.co_name == "<module>" and code.co_filename not in self.files:
                    self.add(code, code.co_filename)
                frame = frame.f_back

    def of(self, file, line):
        """The function of a line; "" where that is not known."""
        if file not in self.files:
            self.add(compiled(file), file)
        return self.lines.get((file, line), "")

    def add(self, code, file):
        """Takes in a file's code. Of a line that several functions share the outermost is named."""
        self.files.add(file)
        level = [code] if code is not None else []
        while level:
            for c in level:
                name = getattr(c, "co_qualname", c.co_name)
                for _, _, line in c.co_lines():
                    if line is not None:
                        self.lines.setdefault((file, line), name)
            level = [n for c in level for n in c.co_consts if type(n) is type(code)]


def compiled(file):
    """The code of a module from the file that Python keeps of it; None where there is none."""
    try:
        with open(importlib.util.cache_from_source(file), "rb") as f:
            content = f.read(LARGEST)
        if content[:4] != importlib.util.MAGIC_NUMBER or len(content) == LARGEST:
            return None
        return marshal.loads(content[16:])
    except Exception:
        return None
