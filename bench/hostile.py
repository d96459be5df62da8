#!/usr/bin/env python3
"""Makes files that hurt each reader, and measures how memdiag refuses or reads them.

    bench/hostile.py [--size MB] [--rounds N] [--packed gzip|zstd] MEMDIAG [WORD …]

Our own files, those of torch.save and logs of runs are made without --packed only: they are compressed inside, if at
all. Without WORDs all files are made, else those whose names hold one of them. With --packed they are compressed: what repeats
shrinks a thousandfold, so that the file unpacks to as much as it may; nothing fills it up to its size. A line a file: processor time of
"memdiag show" (the best of --rounds), that of sha256sum on the same file, which tells how fast the machine is just
now, peak memory beyond the file's size, the exit code, and what was said. Behind a "!" stands what misses the goal: 1 s,
200 MB, one line, exit 3 or a snapshot that is read.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from hostile_files import FILES, LOGS, OURS, PACKERS, WHOLE, nothing, ours, varint


def write(name, path, size, packed):
    if name in WHOLE:
        with open(path, "wb") as file:
            file.write(WHOLE[name](size))
        return
    begin, pieces, *end = FILES[name]
    pack = PACKERS[packed]
    written = unpacked = 0
    with open(path, "wb") as file:
        written += file.write(pack(begin))
        for piece in pieces:
            if written >= size or unpacked >= MOST:
                break
            unpacked += len(piece)
            written += file.write(pack(piece))
        for piece in end:
            written += file.write(pack(piece))
        if packed != "plain" and written < size:
            file.write(nothing(packed, size - written))


# No bound is beyond it.
MOST = 8_000_000_000


def cost(command):
    """Processor time in seconds, peak memory in bytes, exit code and what was said."""
    with tempfile.NamedTemporaryFile("r") as figures:
        # A child of Python's own would have Python's memory counted.
        ran = subprocess.run(["/usr/bin/time", "-q", "-f", "%U %S %M %x", "-o", figures.name, *command],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        user, system, peak, code = figures.read().split()
    return float(user) + float(system), int(peak) << 10, int(code), ran.stderr


def write_run(folder, log):
    """A run of ours with this log, and two snapshots of nothing."""
    os.mkdir(folder)
    for name, content in ("run.json", b'{"schema_version": 1, "steps": 50}'), ("series.memdiag", log):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    for step in 0, 50:
        OURS[b"META"] = varint(2 * step) + bytes(7)
        with open(os.path.join(folder, f"snapshot_{step}.memdiag"), "wb") as file:
            file.write(ours(each=1, make=lambda n: ())(0))


def measure(memdiag, rounds, name, path, command="show"):
    runs = [cost([memdiag, command, "--color", "never", path]) for _ in range(rounds)]
    took = min(run[0] for run in runs)
    _, peak, code, said = runs[-1]
    largest = path if command == "show" else os.path.join(path, "series.memdiag")
    yardstick = cost(["sha256sum", largest])[0]
    beyond = max(0, peak - os.path.getsize(largest)) / 1e6
    lines = [line for line in said.splitlines() if not line.startswith(("hint: ", "memdiag: reading ", "next: "))]
    missed = took > 1 or beyond > 200 or code not in (0, 3) or code == 3 and len(lines) != 1
    said = lines[0].replace(path, "FILE")[:100] if lines else "read"
    print(f"{'!' if missed else ' '} {name:48} {took:6.2f} s {yardstick:6.2f} s {beyond:6.0f} MB  {code}  {said}", flush=True)
    return missed


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", type=int, default=30, help="of a file, in MB (30)")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--packed", choices=PACKERS, default="plain", help="how the files are compressed (plain: not)")
    options.add_argument("memdiag")
    options.add_argument("words", nargs="*")
    options = options.parse_args()
    names = [*FILES] if options.packed != "plain" else [*FILES, *WHOLE, *LOGS]
    wanted = [name for name in names if any(word in name for word in options.words) or not options.words]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        for name in wanted:
            if name in LOGS:
                run = os.path.join(folder, "run")
                write_run(run, LOGS[name](options.size * 1_000_000))
                missed += measure(options.memdiag, options.rounds, name, run, "diff")
                shutil.rmtree(run)
                continue
            write(name, path, options.size * 1_000_000, options.packed)
            missed += measure(options.memdiag, options.rounds, name, path)
    print(f"{missed} of {len(wanted)} files miss the goal")


if __name__ == "__main__":
    sys.exit(main())
