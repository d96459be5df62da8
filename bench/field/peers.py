"""What a person would use in place of memdiag, on the same programs, each by a rule that is written here.

Of resident memory, summed over the program's processes, each tenth of a second, in the second half of the run:

    predict_linear   a straight line through it reaches twice the half's first value within four hours
    one per cent     the mean of its last tenth is more than 1 % above that of its first

From inside, at a half, three quarters and the end of the program's own work, which begins when the imports are over:

    tracemalloc      the line whose bytes grew most (10 frames; the program's innermost line on the stack)
    memray           the same of memray's recording of all allocations (no native stacks)
    objgraph         the type whose number of objects grew most; it names no line

These say "leak" if what grew most did so in both stretches, by more than 1 % of all that was there at a half, and by more
than 16 KiB or 100 objects. This is kind to them: memray has no verdict of its own, and a person must choose the times.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time

import check
import truth
from sampler import process_tree

INSIDE = ("tracemalloc", "memray", "objgraph")
FLOORS = {"tracemalloc": 16 << 10, "memray": 16 << 10, "objgraph": 100}
OUTSIDE = ("predict_linear", "one per cent")
HORIZON = 4 * 3600  # seconds, of predict_linear
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid):
    """Returns the resident bytes of a process and its descendants."""
    total = 0
    for each in process_tree(pid):
        try:
            with open(f"/proc/{each}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * PAGE
        except (OSError, ProcessLookupError):
            continue
    return total


def predict_linear(samples):
    """Tells whether a line through samples (second, bytes) reaches twice its first value within four hours."""
    slope, at_zero = statistics.linear_regression(*zip(*samples))
    first = samples[0][1]
    return slope * (samples[-1][0] + HORIZON) + at_zero > 2 * first


def one_per_cent(samples):
    """Tells whether the last tenth of samples (second, bytes) lies more than 1 % above the first."""
    values = [value for _, value in samples]
    tenth = max(1, len(values) // 10)
    return statistics.fmean(values[-tenth:]) > 1.01 * statistics.fmean(values[:tenth])


def from_outside(samples):
    """Returns the verdicts of the rules on resident memory, of samples (second, bytes) of the whole run."""
    half = samples[len(samples) // 2 :]
    if len(half) < 10:
        return {}
    return {"predict_linear": predict_linear(half), "one per cent": one_per_cent(half)}


def judge(seen, floor):
    """Returns whether what three looks saw is a leak, and the name of what grew most; None where it cannot be known."""
    if not seen:
        return None, ""
    half, late, end = seen
    name = max(end, key=lambda name: end[name] - half.get(name, 0), default="")
    values = [look.get(name, 0) for look in seen]
    grew = values[0] < values[1] < values[2] and values[2] - values[0] > max(floor, 0.01 * sum(half.values()))
    return grew, name


def run(tool, program, python, arguments, limit):
    """Returns a row of what a tool says of a program: leak (None if it gave no answer), at, cpu, and its output."""
    environment = {**os.environ, **check.ENVIRONMENT}
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "result.json")
        command = [python, os.path.join(truth.HERE, "watcher.py"), tool, target, program.path, *arguments]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit
            )
        except subprocess.TimeoutExpired:
            return {"leak": None, "at": "", "failed": f"more than {limit} s"}
        row = {"wall": time.monotonic() - start, "code": done.returncode, "out": done.stdout}
        if not os.path.exists(target):
            return {**row, "leak": None, "at": "", "failed": done.stderr[-300:]}
        with open(target, encoding="utf-8") as file:
            result = json.load(file)
    leak, at = judge(result["seen"], FLOORS[tool])
    return {**row, "leak": leak, "at": at, "cpu": result["cpu"]}
