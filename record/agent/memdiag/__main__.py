"""python -m memdiag is the command memdiag."""

import os
import sys

# Python's own modules must not import the user's random.py from the current folder, which -m puts first.
try:
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated) and sys.path[:1] == [os.getcwd()]:
        del sys.path[0]
except FileNotFoundError:
    pass  # there is no current folder any more

from . import _program  # noqa: E402


# The exit code if memdiag's program cannot be run. Python would exit with 1, which a gate uses for a leak.
FAILED = 5


def main():
    try:
        program = _program.find()
    except RuntimeError as e:
        fail(e)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as e:
        fail(_program.why(program, e))


def fail(why):
    sys.stderr.write("memdiag: %s\n" % why)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
