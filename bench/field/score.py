"""Scores memdiag on the field set: programs on real libraries, each with the truth beside its code.

    bench/field/score.py [-n NAME…] [--held-out] [--out DIR] [--again]

Each program runs plain and under memdiag record, by turns, as it is and mended (--fixed). What `memdiag gate`
and `memdiag diff --format json` say of the run is held against the comments that bench/field/README.md
describes. Results are kept in DIR, a line of JSON each, so that an interrupted run goes on where it ended.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import truth

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
# Seconds after which a program is ended, plain or recorded.
LIMIT = 300


def run(command, **more):
    """The exit code, the output, and the processor's seconds of a command with all that it waited for."""
    start, before = time.monotonic(), os.times()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True, **more) as p:
        try:
            out, err = p.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            out, err = p.communicate()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"code": p.returncode, "out": out.decode(errors="replace"), "err": err.decode(errors="replace")[-2000:], "cpu": used, "wall": time.monotonic() - start}


def score(of, fixed, memdiag, out):
    """What memdiag makes of a program, of which a Truth is known."""
    program = of.path
    python = os.path.join(CACHE, "memdiag", of.needs, "bin", "python")
    command = [python, program] + ["--fixed"] * fixed
    folder = os.path.join(out, os.path.basename(program)[:-3] + ("-fixed" if fixed else ""))
    shutil.rmtree(folder, ignore_errors=True)
    plain = run(command)
    recorded = run([memdiag, "record", "-q", "-o", folder, "--"] + command)
    gate = run([memdiag, "gate", folder])
    diff = run([memdiag, "diff", "--format", "json", folder])
    try:
        findings = json.loads(diff["out"])["findings"]
    except ValueError:
        findings = []
    leaks = [f for f in findings if f["verdict"] == "leak"]
    row = {
        "code": plain["code"], "same": (plain["code"], plain["out"]) == (recorded["code"], recorded["out"]),
        "gate": gate["code"], "sentence": gate["out"].split("\n")[0], "leaks": len(leaks), "possible": sum(f["verdict"] == "inconclusive" for f in findings),
        "cpu": plain["cpu"], "recorded_cpu": recorded["cpu"], "wall": plain["wall"], "recorded_wall": recorded["wall"],
    }
    if leaks:
        first = leaks[0]
        at, holder, cause = first.get("headline") or {}, first.get("holder") or {}, first.get("cause") or {}
        row["at"] = "%s:%s" % (os.path.basename(at.get("file", "")), at.get("line"))
        row["held_by"], row["cause_id"] = holder.get("path", ""), cause.get("id", "")
        row["line"] = row["at"] in ["%s:%d" % (os.path.basename(program), n) for n in of.lines]
        row["holder"] = any(part in row["held_by"] for part in of.holders)
        row["cause"] = row["cause_id"] in of.causes
    return row


def verdict(of, fixed, row):
    """right, wrong or undecided."""
    expect = "clean" if fixed else of.expect
    if row["gate"] == 4:
        return "right" if expect == "filling" else "undecided"
    if expect == "leak":
        return "right" if row["gate"] == 1 else "wrong"
    return "right" if row["gate"] == 0 else "wrong"


def table(rows):
    """The figures of all rows, [(truth, fixed, row)], as lines."""
    leaking = [(t, r) for t, fixed, r in rows if t.expect == "leak" and not fixed]
    quiet = [(t, fixed, r) for t, fixed, r in rows if t.expect != "leak" or fixed]
    right = [verdict(t, fixed, r) for t, fixed, r in rows]
    held = [(t, r) for t, r in leaking if t.holders]

    def share(part, whole):
        return "%d/%d" % (part, whole)

    def costs(key):
        return sorted(r["recorded_" + key] / r[key] for _, _, r in rows if r[key])

    yield "verdict right", share(right.count("right"), len(rows))
    yield "  leaks found", share(sum(r["gate"] == 1 for _, r in leaking), len(leaking))
    yield "  false alarms", share(sum(r["gate"] == 1 for _, _, r in quiet), len(quiet))
    yield "  undecided", share(right.count("undecided"), len(rows))
    yield "line first", share(sum(r.get("line", False) for _, r in leaking), len(leaking))
    yield "holder, where Python has one", share(sum(r.get("holder", False) for _, r in held), len(held))
    yield "cause", share(sum(r.get("cause", False) for _, r in leaking), len(leaking))
    yield "  another cause is named", share(sum(bool(r.get("cause_id")) and not r["cause"] for _, r in leaking), len(leaking))
    yield "one finding a leak", share(sum(r["leaks"] == 1 for _, r in leaking), len(leaking))
    yield "output and exit code unchanged", share(sum(r["same"] for _, _, r in rows), len(rows))
    for key, name in (("cpu", "processor time"), ("wall", "time")):
        of = costs(key)
        if of:
            yield name + ", recorded to plain", "median %.2f, worst %.2f" % (statistics.median(of), of[-1])


def mistakes(of, fixed, row):
    """What is not right of a row, each as a clause."""
    out = []
    if verdict(of, fixed, row) != "right":
        out.append("gate %d, expected %s: %s" % (row["gate"], "clean" if fixed else of.expect, row["sentence"]))
    elif row["gate"] == 1:
        for key, said in (("line", "at"), ("holder", "held_by"), ("cause", "cause_id")):
            if not row.get(key) and (key != "holder" or of.holders):
                out.append("%s: %s" % (key, row.get(said) or "none"))
        if row["leaks"] > 1:
            out.append("%d findings" % row["leaks"])
    if not row["same"]:
        out.append("output or exit code changed")
    return out


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("-n", "--name", action="append", default=[], help="run this program only; several are taken")
    about.add_argument("--held-out", action="store_true", help="the programs that nobody looks at while rules are written, in place of the others")
    about.add_argument("--out", default=os.path.join(CACHE, "memdiag", "field-runs"), help="folder of runs and results")
    about.add_argument("--memdiag", default="memdiag", help="the program to score")
    about.add_argument("--again", action="store_true", help="drop the results of an earlier run")
    given = about.parse_args()
    folder = "heldout" if given.held_out else "programs"
    programs = [truth.read(path) for path in truth.paths([folder])]
    if given.name:
        programs = [of for of in programs if of.name in given.name]
        unknown = set(given.name) - {of.name for of in programs}
        if unknown:
            sys.exit("no program %s in bench/field/%s" % (", ".join(sorted(unknown)), folder))
    os.makedirs(given.out, exist_ok=True)
    results = os.path.join(given.out, "results-%s.jsonl" % folder)
    if given.again and os.path.exists(results):
        os.remove(results)
    done = {}
    if os.path.exists(results):
        with open(results) as f:
            for line in f:
                row = json.loads(line)
                done[row["program"], row["fixed"]] = row
    rows, wrong = [], []
    for i, of in enumerate(programs, 1):
        for fixed in (False, True) if of.expect == "leak" else (False,):
            row = done.get((of.name, fixed))
            if row is None:
                if sys.stderr.isatty():
                    print("\r%d of %d: %-40s" % (i, len(programs), of.name), end="", file=sys.stderr, flush=True)
                row = {"program": of.name, "fixed": fixed, **score(of, fixed, given.memdiag, given.out)}
                with open(results, "a") as f:
                    f.write(json.dumps(row) + "\n")
            rows.append((of, fixed, row))
            faults = mistakes(of, fixed, row)
            if faults:
                wrong.append("  %s%s: %s" % (of.name, ", mended" * fixed, "; ".join(faults)))
    for what, figure in table(rows):
        print("%-34s %s" % (what, figure))
    if wrong:
        print("\nNot right:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
