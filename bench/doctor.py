#!/usr/bin/env python3
"""In how many of the scripts of testdata memdiag doctor proves the cause, in how many its patch is right, and what it says of
those that do not leak. A patch is right if the program with it no longer leaks, and has the same losses; "prints" if what it
prints is another.

    bench/doctor.py MEMDIAG PYTHON [SCRIPT …]

runs one after the other, each four times or more, and writes a table for docs/benchmarks.md.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).parent.parent / "testdata" / "scripts"


def examine(memdiag, python, script, folder):
    run = subprocess.run([memdiag, "-q", "doctor", "--patch", "--format", "json", "-o", folder, "--", python, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.returncode, json.loads(run.stdout) if run.stdout else None


def row(name, code, page):
    if page is None:
        return "| `%s` | code %d | | | | |" % (name, code)
    trials = page.get("trials") or [{}]
    best = trials[0]
    runs = page["runs"]
    times = sum(r.get("seconds", 0) for r in runs) / max(0.001, runs[0].get("seconds", 0))
    return "| `%s` | %s | %s | %s | %s | %.1f |" % (name, page["verdict"], best.get("verdict", ""), best.get("why", page.get("needs", "")).replace("|", "/"), patch(page), times)


def patch(page):
    """What became of the patch: "right", "right, prints", "not right", "none", or "" where nothing leaks."""
    made, lines = page.get("patch"), page.get("verified", [])
    if made is None or not made["diff"]:
        return "" if made is None else "none"
    if made["good"]:
        return "right"
    gone, equal = lines and lines[0].startswith("fixed"), any(x.startswith("losses: the same") for x in lines) or not any(x.startswith("losses:") for x in lines)
    return "right, prints" if gone and equal else "not right"


def main():
    memdiag, python, *scripts = sys.argv[1:]
    scripts = [SCRIPTS / s for s in scripts] or sorted([*SCRIPTS.glob("leak_*.py"), *SCRIPTS.glob("clean_*.py")])
    print("| script | verdict | cause | why | patch | times one run |\n|---|---|---|---|---|---|")
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts:
            code, page = examine(memdiag, python, script, pathlib.Path(folder) / script.stem)
            print(row(script.stem, code, page), flush=True)
            result = ("code %d" % code) if page is None else (page.get("trials") or [{}])[0].get("verdict") or page["verdict"]
            kind = script.stem.partition("_")[0]
            counts[kind, result] = counts.get((kind, result), 0) + 1
            if page is not None and patch(page):
                counts[kind, "patch: " + patch(page)] = counts.get((kind, "patch: " + patch(page)), 0) + 1
    for (kind, result), n in sorted(counts.items()):
        print("%s: %d %s" % (kind, n, result))


main()
