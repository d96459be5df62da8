"""python -m memdiag is the command memdiag."""

import os
import sys

from . import _program


def main():
    try:
        program = _program.find()
    except FileNotFoundError as e:
        sys.exit("memdiag: %s" % e)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as e:
        sys.exit("memdiag: " + _program.why(program, e))


if __name__ == "__main__":
    main()
