"""Scores memdiag, and what people use in its place, on the field set: programs on real libraries, with the truth beside the code.

    score.py --memdiag PATH [NAME…]         programs/, and the pairs of versions/ that are installed
    score.py --memdiag PATH --peers         with what peers.py describes beside it
    score.py --memdiag PATH --held-out      heldout/, once a release: the table only
    score.py --memdiag PATH --quick         a few that CI runs; ends with 1 if a leak or its line is missed, or a false one named

Each program runs alone and under `memdiag record`, one after the other, as it is and mended. What `memdiag gate` and
`memdiag diff --format json` say of the run is held against the header that README.md describes. Results are kept in a
folder, a line of JSON each: an interrupted score goes on where it ended; another build of memdiag, and a program that
has changed, are scored anew.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

import check
import install
import peers
import truth

# What a row has of a recording, whatever is said of it.
MEASURED = "program variant tool source build same code cpu recorded_cpu wall recorded_wall outside".split()
LIMIT = 300  # seconds after which a program is ended
# What --quick runs: programs that need no more than CI installs, in the environments torch and jax.
QUICK = (
    "gan_penalty_log gnn_neighbour_cache loader_errors vision_running_loss atexit_jobs jax_kept clean_ema_teacher clean_memory_handler"
).split()


def run(command, watch=False):
    """Returns exit code, output, processor's and wall seconds of a command, and if asked its resident memory, [(second, bytes)]."""
    start, before = time.monotonic(), os.times()
    samples = []
    ended = threading.Event()

    def sample(pid):
        while not ended.wait(0.1):
            samples.append((time.monotonic() - start, peers.resident(pid)))

    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, start_new_session=True, env={**os.environ, **check.ENVIRONMENT}, **pipes) as process:
        if watch:
            threading.Thread(target=sample, args=(process.pid,), daemon=True).start()
        try:
            out, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, _ = process.communicate()
        ended.set()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"code": process.returncode, "out": out.decode(errors="replace"), "cpu": cpu, "wall": time.monotonic() - start}, samples


def is_named(program, at):
    """Tells whether at, FILE:LINE, is one of the program's guilty lines."""
    return at in ["%s:%d" % (os.path.basename(program.path), line) for line in program.lines]


def run_of(folder, program, variant):
    """Returns the folder of the recording of a variant of a program."""
    return os.path.join(folder, "runs", f"{program.name}-{variant}")


def score(program, variant, python, arguments, memdiag, folder):
    """Returns what memdiag, and the rules on resident memory, make of a variant of a program."""
    command = [python, program.path, *arguments]
    to = run_of(folder, program, variant)
    shutil.rmtree(to, ignore_errors=True)
    plain, samples = run(command, watch=True)
    recorded, _ = run([memdiag, "record", "-q", "-o", to, "--", *command])
    return {
        "same": (plain["code"], plain["out"]) == (recorded["code"], recorded["out"]),
        "code": plain["code"],
        "cpu": plain["cpu"],
        "recorded_cpu": recorded["cpu"],
        "wall": plain["wall"],
        "recorded_wall": recorded["wall"],
        "outside": peers.from_outside(samples),
        **judge(program, memdiag, to),
    }


def judge(program, memdiag, to):
    """Returns what memdiag says of a recording, held against the program's truth."""
    gate, _ = run([memdiag, "gate", to])
    diff, _ = run([memdiag, "diff", "--format", "json", to])
    try:
        said = json.loads(diff["out"])
    except ValueError:
        said = {"findings": []}
    # A leak of a worker counts as one of the program.
    findings = said["findings"] + [finding for child in said.get("children", ()) for finding in child["findings"]]
    leaks = [finding for finding in findings if finding["verdict"] == "leak"]
    row = {
        "gate": gate["code"],
        "sentence": gate["out"].split("\n")[0],
        "leaks": len(leaks),
    }
    if leaks:
        first = leaks[0]
        at, holder, cause = first.get("headline") or {}, first.get("holder") or {}, first.get("cause") or {}
        row["at"] = "%s:%s" % (os.path.basename(at.get("file", "")), at.get("line"))
        row["held_by"], row["cause_id"] = holder.get("path", ""), cause.get("id", "")
        row["line"] = is_named(program, row["at"])
        row["holder"] = any(part in row["held_by"] for part in program.holders)
        row["cause"] = row["cause_id"] in program.causes
        row["cause_doubted"] = bool(set(cause.get("others") or ()) & set(program.causes))
    return row


def verdict(expect, said):
    """Returns right, wrong or undecided, where a tool said leak (True), none (False) or that it cannot tell (None)."""
    if said is None:
        return "right" if expect == "filling" else "undecided"
    return "right" if said == (expect == "leak") else "wrong"


def of_gate(code):
    """Returns what an exit code of gate says; a gate that fails says nothing."""
    return {0: False, 1: True}.get(code)


def share(part, whole):
    return f"{part}/{whole}"


def cost(pairs):
    """Returns the quotients of pairs (with, without), as their median and the worst."""
    quotients = sorted(after / before for after, before in pairs if after and before)
    return "%.2f, worst %.2f" % (statistics.median(quotients), quotients[-1]) if quotients else ""


def column(entries):
    """Returns the figures of one tool by name; entries are (expect, said, line is right), None for a tool without lines."""
    leaking = [entry for entry in entries if entry[0] == "leak"]
    quiet = [entry for entry in entries if entry[0] != "leak"]
    verdicts = [verdict(expect, said) for expect, said, _ in entries]
    figures = {
        "verdict right": share(verdicts.count("right"), len(entries)),
        "leaks found": share(sum(said is True for _, said, _ in leaking), len(leaking)),
        "false alarms": share(sum(said is True for _, said, _ in quiet), len(quiet)),
        "undecided": share(verdicts.count("undecided"), len(entries)),
    }
    if any(line is not None for _, _, line in entries):
        figures["line first"] = share(sum(line is True and said is True for _, said, line in leaking), len(leaking))
    return figures


def table(rows, peer_rows):
    """Returns the figures of each tool, {tool: {name: figure}}.

    rows are (program, expect, row) of score(); peer_rows (program, expect, tool, row) of peers.run().
    """
    leaking = [(program, row) for program, expect, row in rows if expect == "leak"]
    held = [row for program, row in leaking if program.holders]
    named = [row for _, row in leaking if row.get("cause_id")]
    figures = {"memdiag": column([(expect, of_gate(row["gate"]), row.get("line", False)) for _, expect, row in rows])}
    figures["memdiag"] |= {
        "holder right, where Python has one": share(sum(row.get("holder", False) for row in held), len(held)),
        "cause right": share(sum(row["cause"] for row in named), len(leaking)),
        "another, surely": share(sum(not row["cause"] and not row["cause_doubted"] for row in named), len(leaking)),
        "another, with doubt": share(sum(not row["cause"] and row["cause_doubted"] for row in named), len(leaking)),
        "one finding a leak": share(sum(row["leaks"] == 1 for _, row in leaking), len(leaking)),
        "findings a leak": "%.2f" % statistics.fmean([row["leaks"] for _, row in leaking if row["leaks"]] or [0]),
        "output and exit code unchanged": share(sum(row["same"] for _, _, row in rows), len(rows)),
        "processor time, to plain": cost([(row["recorded_cpu"], row["cpu"]) for _, _, row in rows]),
        "time, to plain": cost([(row["recorded_wall"], row["wall"]) for _, _, row in rows]),
    }
    for tool in peers.OUTSIDE:
        figures[tool] = column([(expect, row["outside"].get(tool), None) for _, expect, row in rows])
    for tool in peers.INSIDE:
        of = [(program, expect, row) for program, expect, which, row in peer_rows if which == tool]
        if of:
            lines = [None if tool == "objgraph" else is_named(program, row["at"]) for program, _, row in of]
            figures[tool] = column([(expect, row["leak"], line) for (_, expect, row), line in zip(of, lines)])
            plain = {(program.name, row["variant"]): row["cpu"] for program, _, row in rows}
            pairs = [(row.get("cpu"), plain.get((program.name, row["variant"]))) for program, _, row in of]
            figures[tool]["processor time, to plain"] = cost(pairs)
    return figures


def printed(figures):
    """Yields the table as lines of text, or of Markdown in between."""
    names = list(figures["memdiag"])
    columns = [["", *names]] + [[tool, *(figures[tool].get(name, "") for name in names)] for tool in figures]
    widths = [max(map(len, each)) for each in columns]
    for i, line in enumerate(zip(*columns)):
        yield "| " + " | ".join(part.ljust(width) for part, width in zip(line, widths)) + " |"
        if i == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def is_sound(expect, row):
    """Tells whether a leak was found at its line, or nothing was called a leak where none is; that it cannot tell is no fault there."""
    said = of_gate(row["gate"])
    return said is True and row.get("line", False) if expect == "leak" else said is not True


def mistakes(program, expect, row):
    """Returns what memdiag has wrong in a row, each as a clause."""
    out = []
    if verdict(expect, of_gate(row["gate"])) != "right":
        out.append(f"gate {row['gate']}, expected {expect}: {row['sentence']}")
    elif row["gate"] == 1:
        for key, said, truth_is in (("line", "at", program.lines), ("holder", "held_by", program.holders), ("cause", "cause_id", program.causes)):
            if truth_is and not row.get(key):
                out.append(f"{key}: {row.get(said) or 'none'}, expected {' '.join(map(str, truth_is))}")
        if row["leaks"] > 1:
            out.append(f"{row['leaks']} findings")
    if not row["same"]:
        out.append("output or exit code changed")
    if row["cpu"] and row["recorded_cpu"] > 1.3 * row["cpu"]:
        out.append("processor time %.1f s, plain %.1f s" % (row["recorded_cpu"], row["cpu"]))
    return out


def digest(path):
    """Returns what tells one version of a file from another."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


class Results:
    """Rows in a file, a line of JSON each. Rows of another version of a program do not count, nor those of another build of memdiag unless
    build is None."""

    def __init__(self, path, build, programs):
        sources = {program.name: digest(program.path) for program in programs}
        self.path = path
        self.build = build
        self.rows = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for row in map(json.loads, file):
                    if row["source"] == sources.get(row["program"]) and build in (None, row.get("build", build)):
                        self.rows[row["program"], row["variant"], row["tool"]] = row

    def add(self, row):
        self.rows[row["program"], row["variant"], row["tool"]] = row
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def measure(program, variant, python, arguments, tool, memdiag, build, folder):
    """Returns the row of one tool on one variant of a program."""
    row = {"program": program.name, "variant": variant, "tool": tool, "source": digest(program.path)}
    if tool == "memdiag":
        return {**row, "build": build, **score(program, variant, python, arguments, memdiag, folder)}
    return {**row, **peers.run(tool, program, python, arguments, LIMIT)}


def chosen(folders, names, field):
    """Returns the programs of these names, or all, and says on stderr which lack their environment."""
    programs = [truth.read(path) for path in truth.paths(folders)]
    unknown = set(names) - {program.name for program in programs}
    if unknown:
        sys.exit(f"no program {', '.join(sorted(unknown))} in {' or '.join(folders)}")
    programs = [program for program in programs if not names or program.name in names]
    missing = [p.name for p in programs if not all(os.path.exists(each[2]) for each in check.variants_of(p, field))]
    if missing:
        print(f"left out, since install.py has not run for them: {', '.join(missing)}", file=sys.stderr)
    return [program for program in programs if program.name not in missing]


def judge_again(programs, results, options):
    """Has the recordings that are there judged by this build; what they cost stays as it was."""
    rows = [(program, row) for (name, _, tool), row in results.rows.items() if tool == "memdiag" for program in programs if program.name == name]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (program, row), said in zip(rows, pool.map(lambda each: judge(each[0], options.memdiag, run_of(options.out, each[0], each[1]["variant"])), rows)):
            kept = {key: row[key] for key in MEASURED if key in row}
            results.rows[program.name, row["variant"], "memdiag"] = {**kept, **said}


def measure_all(programs, tools, results, options):
    """Runs what results lacks, and says on stderr how far it is."""
    jobs = []
    for program in programs:
        for variant, _, python, arguments in check.variants_of(program, options.field):
            for tool in tools:
                if (program.name, variant, tool) not in results.rows:
                    jobs.append((program, variant, python, arguments, tool))
    jobs.sort(key=lambda job: job[-1] != "memdiag")
    start = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(measure, *job, options.memdiag, results.build, options.out) for job in jobs]
        for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            row = future.result()
            results.add(row)
            left = (time.monotonic() - start) / done * (len(jobs) - done) / 60
            name = "" if options.held_out else f"{row['program']} {row['variant']}, {row['tool']}; "
            print(f"{done} of {len(jobs)}: {name}{left:.0f} min left", file=sys.stderr, flush=True)


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("names", nargs="*", metavar="PROGRAM", help="these programs only")
    about.add_argument("--memdiag", required=True, help="the program to score")
    about.add_argument("--peers", action="store_true", help="run what peers.py describes, too")
    about.add_argument("--held-out", action="store_true", help="the programs that nobody looks at while rules are written, in place of the others")
    about.add_argument("--quick", action="store_true", help="a few that CI runs, and fail if a leak or its line is missed, or a false one is named")
    about.add_argument("--again", action="store_true", help="judge the recordings that are there, by whatever build they were made, and record nothing")
    about.add_argument("--out", default=os.path.join(install.HOME, "field-score"), help="folder of runs and results")
    about.add_argument("--jobs", type=int, default=2, help="programs that run at a time")
    about.add_argument("--json", action="store_true", help="the table as JSON")
    options = about.parse_args()
    os.makedirs(options.out, exist_ok=True)
    build = digest(options.memdiag)
    folders = ("heldout",) if options.held_out else ("programs", "versions")
    options.field = "torch" if options.quick else "field"
    programs = chosen(folders, QUICK if options.quick else options.names, options.field)
    results = Results(os.path.join(options.out, f"results-{folders[0]}.jsonl"), None if options.again else build, programs)
    if options.again:
        judge_again(programs, results, options)
    else:
        measure_all(programs, ["memdiag", *(peers.INSIDE if options.peers else ())], results, options)

    rows, peer_rows, wrong = [], [], []
    for program in programs:
        for variant, leaky, _, _ in check.variants_of(program):
            expect = program.expect if leaky else "clean"
            row = results.rows.get((program.name, variant, "memdiag"))
            if row is None:
                continue  # not recorded yet
            rows.append((program, expect, row))
            for tool in peers.INSIDE:
                if (program.name, variant, tool) in results.rows:
                    peer_rows.append((program, expect, tool, results.rows[program.name, variant, tool]))
            faults = mistakes(program, expect, row)
            if faults:
                wrong.append(f"  {program.name} {variant}: {'; '.join(faults)}")
    figures = table(rows, peer_rows)
    if options.json:
        print(json.dumps({"build": build, "variants": len(rows), "figures": figures, "wrong": [] if options.held_out else wrong}, indent=1))
        return
    print("\n".join(printed(figures)))
    if wrong and not options.held_out:
        print("\nNot right:\n" + "\n".join(wrong))
    if options.quick and not all(is_sound(expect, row) for _, expect, row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
