"""python -m memdiag is the command memdiag."""

import os
import sys

from . import _program


def main():
    try:
        program = _program.find()
        os.execv(program, [program, *sys.argv[1:]])
    except FileNotFoundError as e:
        # Of a program that is there, it says that the loader is missing.
        sys.exit("memdiag: %s" % (e if e.filename is None else "%s: %s" % (e.filename, e.strerror)))
    except PermissionError:
        sys.exit("memdiag: %s may not be executed\nhint: chmod +x %s, unless its disk is mounted noexec" % (program, program))


if __name__ == "__main__":
    main()
