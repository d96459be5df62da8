"""%memdiag and %%memdiag, by IPython's own machinery. Arguments: a run that leaks."""

import sys

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "memdiag")

CELL = """
from memdiag import mark

kept = []
print("the cell runs")
for step in range(1, 121):
    kept.append([bytearray(4096) for _ in range(50)])
    mark(step=step)
"""

with capture_output() as said:
    decision = shell.run_cell_magic("memdiag", "--every 10 --python-heap on", CELL)
assert "the cell runs" in said.stdout, said.stdout
assert decision.verdict == "leak" and "cell.py:7" in decision.sentence, decision

with capture_output() as said:
    done = shell.run_cell("%memdiag " + sys.argv[1])
done.raise_error()
assert done.result.verdict == "leak"
data, _ = shell.display_formatter.format(done.result)
assert "<b>leak</b>" in data["text/html"] and data["text/plain"] == done.result.sentence, data

with capture_output() as said:
    done = shell.run_cell("%%memdiag\nraise SystemExit(3)")
assert isinstance(done.error_in_exec, RuntimeError), done.error_in_exec

# A mistake is a sentence in the notebook, not thirty lines of calls within memdiag.
for line, says in ("no-such-run", "no-such-run: no such run"), ("--help", "memdiag gate [flags]"), ("'no end", "No closing quotation"):
    with capture_output() as said:
        done = shell.run_cell("%memdiag " + line)
    assert isinstance(done.error_in_exec, RuntimeError) and says in said.stdout and "Traceback" not in said.stdout, (line, said.stdout)
