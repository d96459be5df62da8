"""Runs a program as __main__ under another tool, and writes what the tool saw at three times of the program's own work.

    watcher.py TOOL RESULT.json PROGRAM [ARGUMENT...]

TOOL is tracemalloc, objgraph or memray. peers.py judges what is written: for each of the times (a half, three quarters and
the end) the bytes of each line, or the objects of each type.
"""

import collections
import json
import os
import runpy
import sys
import tempfile
import threading
import time
import tracemalloc

import install

FRAMES = 10  # of tracemalloc: enough to reach the program from inside most libraries


def line_in(program, frames):
    """Returns the innermost of frames (file, line), innermost first, that is in the program, as text; else the innermost."""
    for file, line in frames:
        if file == program:
            return "%s:%d" % (os.path.basename(file), line)
    file, line = frames[0]
    return "%s:%d" % (file, line)


def by_line(program):
    """Returns the bytes that tracemalloc knows of each line of the program, or of a library where none is on the stack."""
    by_stack = collections.Counter()
    for _, size, stack, *_ in tracemalloc.take_snapshot().traces._traces:  # as plain tuples: ten times as fast
        by_stack[stack] += size
    found = collections.Counter()
    for stack, size in by_stack.items():
        files = {file for file, _ in stack}
        if program in files or __file__ not in files:  # else it is what looking takes
            found[line_in(program, stack)] += size
    return found


def by_type():
    """Returns the number of objects of each type, as objgraph counts them."""
    import objgraph

    return objgraph.typestats(shortnames=False)


class Watcher(threading.Thread):
    """Looks once the imports are over, and then ever more rarely, so that looks take a fifth of the time."""

    def __init__(self, look, prepare):
        super().__init__(daemon=True)
        self.look = look
        self.prepare = prepare
        self.start_time = time.monotonic()
        self.begin = 0.0  # the second at which the imports were over
        self.looks = []  # (second, what was seen)
        self.ended = threading.Event()

    def look_now(self):
        self.looks.append((time.monotonic() - self.start_time, self.look()))

    def run(self):
        modules = 0
        while modules + 10 <= (modules := len(sys.modules)):
            if self.ended.wait(0.5):
                return
        self.begin = time.monotonic() - self.start_time
        self.prepare()
        pause = 0.2
        while not self.ended.wait(pause):
            began = time.monotonic()
            self.look_now()
            pause = max(0.2, 4 * (time.monotonic() - began))


def three_times(begin, looks):
    """Returns what was seen at a half, three quarters and the end of the program's own work; nothing if it was too short."""
    end = looks[-1][0] if looks else begin
    times = [begin + part * (end - begin) for part in (0.5, 0.75, 1)]
    seen = [max((look for look in looks if look[0] <= at), key=lambda look: look[0], default=None) for at in times]
    return [look[1] for look in seen] if all(seen) and len({look[0] for look in seen}) == 3 else []


def three_times_of_memray(path, program, begin, end):
    """Returns what three_times does, from memray's recording: the bytes of each line that lived at each of the times. The
    end is a twentieth of the run before its last, since at its last the program frees what it has."""
    import memray

    reader = memray.FileReader(path)
    times = [snapshot.time for snapshot in reader.get_memory_snapshots()]
    if not times:
        return []
    first, last = times[0], times[-1]
    half, late = (first + 1000 * (begin + part * (end - begin)) for part in (0.5, 0.75))
    ends = last - 0.05 * (last - first)
    half, late, end = (sum(at <= limit for at in times) for limit in (half, late, ends))
    seen = [collections.Counter() for _ in range(3)]
    for record in reader.get_temporal_allocation_records(merge_threads=True):
        frames = None
        for interval in record.intervals:
            for at, found in ((half, seen[0]), (late, seen[1]), (end, seen[2])):
                freed = interval.deallocated_before_snapshot
                if interval.allocated_before_snapshot <= at and (freed is None or freed > at):
                    frames = frames or [(file, line) for _, file, line in record.stack_trace()] or [("?", 0)]
                    found[line_in(program, frames)] += interval.n_bytes
    return seen


def main():
    tool, target, program, *arguments = sys.argv[1:]
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    sys.path.append(install.tools())  # last, so that the program finds its own
    looks = {"tracemalloc": lambda: by_line(program), "objgraph": by_type, "memray": lambda: None}
    watcher = Watcher(looks[tool], lambda: tracemalloc.start(FRAMES) if tool == "tracemalloc" else None)
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "memray")
        try:
            if tool == "memray":
                import memray

                with memray.Tracker(recording):
                    kept = runpy.run_path(program, run_name="__main__")
            else:
                kept = runpy.run_path(program, run_name="__main__")
        finally:
            watcher.ended.set()
            watcher.join()
        if watcher.begin:
            watcher.look_now()
        used = sum(os.times()[:4])
        end = time.monotonic() - watcher.start_time
        del kept
        if tool == "memray":
            seen = three_times_of_memray(recording, program, watcher.begin, end)
        else:
            seen = three_times(watcher.begin, watcher.looks)
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"seen": seen, "cpu": used}, file)


if __name__ == "__main__":
    main()
