#!/usr/bin/env python3
"""Judges the series of snapshots in bench/series, whose truth is known: python3 bench/series.py [NAME …].

Prints for each what is wrong: the gate's exit code, the line, the rate (by more than a fifth), the number of findings. Ends
with 1 if an exit code is wrong. MEMDIAG is the program; by default it is built. It needs ../shared/tools.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "series"))
import programs  # noqa: E402, F401
import records  # noqa: E402, F401
import windows  # noqa: E402, F401
from truth import ALL  # noqa: E402


def number(name):
    """Sorts names by the number in them."""
    return int("".join(c for c in name if c.isdigit()) or 0), name


def judge(memdiag, folder, truth):
    """What is wrong about a series: faults of the exit code, and others."""
    gate = subprocess.run([memdiag, "gate", "-q", "."], cwd=folder, capture_output=True, text=True)
    wrong = [] if gate.returncode in truth["ok"] else ["gate %d, not %s" % (gate.returncode, " or ".join(map(str, truth["ok"])))]
    files = sorted(os.listdir(folder), key=number)
    diff = subprocess.run([memdiag, "diff", "--format", "json", *files], cwd=folder, capture_output=True, text=True)
    if diff.returncode:
        return [*wrong, "diff %d: %s" % (diff.returncode, diff.stderr.strip()[:150])], []
    leaks = [f for f in json.loads(diff.stdout)["findings"] if f["verdict"] == "leak"]
    if not truth["leak"] or not leaks:
        return wrong, []
    others = []
    first = leaks[0].get("headline") or {}
    line = "%s:%s" % (os.path.basename(first.get("file", "")), first.get("line"))
    if truth["lines"] and line not in truth["lines"]:
        others.append("line %s" % line)
    rate = leaks[0]["rate"]["bytes"]["value"]
    if truth["rate"] and not 0.8 < rate / truth["rate"] < 1.25:
        others.append("%.0f bytes a step, not %.0f" % (rate, truth["rate"]))
    if len(leaks) != truth["findings"]:
        others.append("%d findings, not %d" % (len(leaks), truth["findings"]))
    return wrong, others


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    faults = flaws = judged = 0
    with tempfile.TemporaryDirectory() as work:
        memdiag = os.environ.get("MEMDIAG")
        if not memdiag:
            memdiag = os.path.join(work, "memdiag")
            subprocess.run(["go", "build", "-o", memdiag, "./cmd/memdiag"], check=True, cwd=os.path.dirname(HERE))
        for name, (write, truth) in sorted(ALL.items()):
            if o.names and name not in o.names:
                continue
            folder = os.path.join(work, name)
            os.makedirs(folder)
            write(folder)
            wrong, others = judge(os.path.abspath(memdiag), folder, truth)
            judged, faults, flaws = judged + 1, faults + bool(wrong), flaws + bool(others)
            print("%-24s %-5s %s" % (name, truth["leak"], "; ".join(wrong + others) or "right"), flush=True)
    print("%d of %d exit codes wrong, %d others with another flaw" % (faults, judged, flaws))
    return min(1, faults)


if __name__ == "__main__":
    sys.exit(main())
