"""%memdiag and %%memdiag in Jupyter. %load_ext memdiag defines them."""

import os
import shlex
import subprocess
import sys
import tempfile

from . import _calls


def register(ipython):
    ipython.register_magic_function(memdiag, "line_cell", "memdiag")


class NotJudged(RuntimeError):
    """There is no verdict. The notebook shows only the message: the stack within memdiag would hide it."""

    def _render_traceback_(self):
        return [str(self)]


def memdiag(line, cell=None):
    """%memdiag RUN shows whether a recorded run leaks. %%memdiag runs the cell as a separate program under memdiag gate, with the flags on
    its line, and shows whether it leaks. The cell does not see the notebook's variables, and the notebook does not see the cell's."""
    try:
        return judge(line, cell)
    except (OSError, RuntimeError, ValueError) as e:
        raise NotJudged(str(e)) from None


def judge(line, cell):
    flags = shlex.split(line)
    if cell is None:
        return _calls.judged(lambda path: _calls.call(["gate", "--quiet", "--json", path, *flags], _calls.JUDGED))
    with tempfile.TemporaryDirectory(prefix="memdiag-cell-") as folder:
        script = os.path.join(folder, "cell.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(cell)
        run = [] if {"-o", "--out"} & {f.split("=")[0] for f in flags} else ["-o", os.path.join(folder, "run")]
        # The cell can import what lies beside the notebook, as the notebook can.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")])), "PYTHONUNBUFFERED": "1"}
        return _calls.judged(lambda path: show(
            ["gate", "--quiet", "--json", path, *run, *flags, "--", sys.executable, script], environment))


def show(args, environment):
    """Runs memdiag's program and prints its lines as they come."""
    with _calls.start(args, subprocess.Popen, env=environment, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace") as child:
        for text in child.stdout:
            sys.stdout.write(text)
    if child.returncode not in _calls.JUDGED:
        raise RuntimeError("the cell was not judged: memdiag gate ended with code %d" % child.returncode)
