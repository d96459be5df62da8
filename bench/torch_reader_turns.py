"""Time memdiag and CPython on PyTorch snapshots by turns: torch_reader_turns.py TORCH_READER MEMDIAG ROUNDS FILE ...

For torch_reader.sh. Of each file the best of several readings in one process, and the whole of a process that reads it
once, both by processor time, memdiag and CPython in turn; medians of the rounds. CPython's is the C pickle.load, its
collector on and off. Peak memory is that of a process that reads the file once.
"""
import os, statistics, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
LOAD = "import gc, pickle, sys; sys.argv[2] == 'off' and gc.disable(); pickle.load(open(sys.argv[1], 'rb'))"


def inside(command):
    """Processor seconds and KiB that a measuring program prints."""
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return float(out[0]), int(out[1])


def whole(command):
    """Processor seconds of a process."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def warm(path):
    """Has the system keep a file in memory: who reads it first would pay for the disk."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def measure(reader, memdiag, rounds, path):
    warm(path)
    size = os.path.getsize(path)
    if size > 200e6:
        rounds = 1
    readings = str(1 if size > 1e9 else 3 if size > 200e6 else 5 if size > 5e6 else 30)
    fewer = str(1 if size > 200e6 else 3 if size > 5e6 else 7)
    python = [sys.executable, os.path.join(here, "torch_reader.py"), path]
    ways = {
        "go": lambda: inside([reader, "-n", readings, path])[0],
        "on": lambda: inside(python + ["plain", "on", fewer])[0],
        "off": lambda: inside(python + ["plain", "off", fewer])[0],
        "restricted on": lambda: inside(python + ["restricted", "on", fewer])[0],
        "restricted off": lambda: inside(python + ["restricted", "off", fewer])[0],
        "show": lambda: whole([memdiag, "show", path]),
        "load on": lambda: whole([sys.executable, "-c", LOAD, path, "on"]),
        "load off": lambda: whole([sys.executable, "-c", LOAD, path, "off"]),
    }
    taken = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(way())
    t = {name: statistics.median(values) for name, values in taken.items()}
    peak, theirs = inside([reader, "-n", "1", path])[1], inside(python + ["plain", "on", "1"])[1]
    print("%-46s %8.1f %7.0f | %6.1f %6.1f | %6.1f %6.1f | %6.1f %6.1f | %7.1f %8.1f %5.2f" % (
        os.path.basename(path), size / 1e6, size / 1e6 / t["go"], t["on"] / t["go"], t["off"] / t["go"],
        t["restricted on"] / t["go"], t["restricted off"] / t["go"],
        t["load on"] / t["show"], t["load off"] / t["show"], peak / 1024, theirs / 1024, peak / theirs), flush=True)


def main():
    reader, memdiag, rounds, *paths = sys.argv[1:]
    print("%-46s %8s %7s | %13s | %13s | %13s | %s" % ("file", "MB", "MB/s", "gc on, off", "restricted", "process: on, off", "peak MiB, CPython's, ratio"))
    for path in paths:
        measure(reader, memdiag, int(rounds), path)


main()
