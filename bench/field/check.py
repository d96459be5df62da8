"""Checks the truth of the field set without memdiag: runs each program, and its twin, and counts what lives from inside.

    check.py                        all programs, and the pairs of versions that are installed
    check.py heldout/NAME.py NAME   some of them
    check.py --results FILE ...     appends what it finds to FILE, and skips what is there without a fault

It fails if a program that leaks or fills does not grow in the last half of its run, if a twin, a mended version or a
clean program does, or if a program and its twin print different results. README.md tells how growth is decided.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import install
import truth

# How much a measure must rise over the last half before the rise counts: what interpreters and allocators
# do by themselves stays below. Bytes, but for the measures named as counts.
FLOORS = {
    "tensors": 20,  # a count
    "tensor bytes": 16 << 10,
    "arrays": 20,  # a count
    "array bytes": 16 << 10,
    "objects": 2000,  # a count, of what the collector tracks
    "blocks": 20_000,  # a count, of Python's own allocator
    "graph nodes": 200,  # a count
    "heap": 256 << 10,
    "children": 2 << 20,  # private memory of the processes that it started
}
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}  # of each program


def begin_of(samples):
    """Returns when the program's own work begins: after the last sample in which ten modules or more were new."""
    begin = 0.0
    for (_, before), (at, values) in zip(samples, samples[1:]):
        if values.get("modules", 0) >= before.get("modules", 0) + 10:
            begin = at
    return begin


def five_points(samples, measure):
    """Returns a measure at five points of the last half of a program's own work: the lower quartile of each fifth of it, so that what lives
    for a part of a step only does not count. A fifth without a sample has what was seen last before it. None where
    more than two are without, or nothing was seen before."""
    seen = [(at, values[measure]) for at, values in samples if measure in values]
    if not seen:
        return None
    begin, end = begin_of(samples), samples[-1][0]
    length = (end - begin) / 10
    points = []
    empty = 0
    for fifth in range(5):
        start = end - (5 - fifth) * length
        inside = sorted(value for at, value in seen if start <= at < start + length)
        before = [value for at, value in seen if at < start]
        empty += not inside
        if empty > 2 or not (inside or before):
            return None
        points.append(inside[len(inside) // 4] if inside else before[-1])
    return points


def rise_of(points, floor):
    """Returns how much five points rise, 0 where that is not a growth: below floor, at most in one stair, or not
    kept up to the end."""
    rise = points[-1] - points[0]
    steps = [after - before for before, after in zip(points, points[1:])]
    steady = min(steps) >= -rise / 10 and sum(step > rise / 20 for step in steps) >= 3
    return rise if rise > floor and steady else 0


def growth(samples):
    """Returns what grows in the last half: the rise by measure."""
    rises = {}
    for measure, floor in FLOORS.items():
        points = five_points(samples, measure)
        if points is not None:
            rise = rise_of(points, floor)
            if rise:
                rises[measure] = rise
    return rises


def variants_of(program, field="field"):
    """Yields the variants of a program that are run: name, whether it should grow, interpreter, arguments.

    field is the environment of programs that name none."""
    if program.leaky:
        for which in ("leaky", "mended"):
            yield which, which == "leaky", install.python_of(install.version_environment(program, which)), []
        return
    python = install.python_of(field if program.needs == "field" else program.needs)
    yield "plain", program.expect != "clean", python, []
    if program.expect != "clean":
        yield "fixed", False, python, ["--fixed"]


def run(program, python, arguments):
    """Runs a program under the sampler; returns how it ended, CPU seconds, wall seconds and samples."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "samples.json")
        sampler = os.path.join(truth.HERE, "sampler.py")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        done = subprocess.run(
            [python, sampler, target, program.path, *arguments],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=900,
        )
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        samples = []
        if os.path.exists(target):
            with open(target, encoding="utf-8") as file:
                samples = json.load(file)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, cpu, wall, samples


def examine(program, variant, should_grow, python, arguments):
    """Returns a row of results for one variant of a program."""
    row = {"name": program.name, "variant": variant, "expect": program.expect, "faults": []}
    try:
        done, cpu, wall, samples = run(program, python, arguments)
    except subprocess.TimeoutExpired:
        row["faults"].append("ran for more than 15 minutes")
        return row
    output = done.stdout.strip().splitlines()
    row.update(cpu=round(cpu, 1), wall=round(wall, 1), samples=len(samples), result=output[-1] if output else "")
    if done.returncode or not output:
        row["faults"].append(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return row
    row["growth"] = growth(samples)
    row["points"] = {measure: five_points(samples, measure) for measure in (*FLOORS, "private")}
    if row["points"]["blocks"] is None:
        row["faults"].append("too short to be sampled")
    elif should_grow and not row["growth"]:
        row["faults"].append("does not grow")
    elif not should_grow and row["growth"]:
        row["faults"].append("grows")
    return row


def shown(row):
    """Returns a row as a line of text."""
    grown = ", ".join(f"{measure} +{int(rise):,}" for measure, rise in row.get("growth", {}).items())
    verdict = "FAULT " + "; ".join(row["faults"]) if row["faults"] else "ok"
    return (
        f"{row['name']:30} {row['variant']:6} {row['expect']:7} {row.get('cpu', 0):6.1f} s  {verdict}"
        f"  [{grown or 'no growth'}]  {row.get('result', '')}"
    )


def chosen(names):
    """Returns the programs of these names, or all that can be run."""
    programs = [truth.read(path) for path in truth.paths()]
    if not names:
        return [program for program in programs if all(os.path.exists(v[2]) for v in variants_of(program))]
    wanted = {os.path.splitext(os.path.basename(name))[0] for name in names}
    unknown = wanted - {program.name for program in programs}
    if unknown:
        sys.exit(f"no program {', '.join(sorted(unknown))}")
    return [program for program in programs if program.name in wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--results", metavar="FILE", help="append results to FILE, and skip what is there without a fault")
    options = parser.parse_args()
    rows = []
    if options.results and os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    have = {(row["name"], row["variant"]): row for row in rows if not row["faults"]}
    faults = 0
    for program in chosen(options.names):
        results = []
        for variant, should_grow, python, arguments in variants_of(program):
            row = have.get((program.name, variant))
            if row is None:
                row = examine(program, variant, should_grow, python, arguments)
                if results and row.get("result") != results[0].get("result"):
                    row["faults"].append("prints another result than the program that it mends")
                if options.results:
                    with open(options.results, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
            results.append(row)
            faults += bool(row["faults"])
            print(shown(row), flush=True)
    print(f"{faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
