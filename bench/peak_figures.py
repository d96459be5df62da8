"""Prints what the moment of the peak costs, and how well a replay agrees, as ratios and counts.

    python3 bench/peak_figures.py --memdiag ./memdiag [--gb 2] [--turns 5] [--browser] [FILE …]

FILEs are snapshots of PyTorch's, in place of ../shared/data/torch. Four figures:

  the peak of a large file: `show --at peak` beside `show --at end`, by turns, medians of wall and processor time; peak memory; whether
  the peak and its event are those with which the file was written, and what of it `timeline` makes a page, with its size
  the peaks of FILEs: as bench/peak.py does, beside a replay by the rule of PyTorch's viewer
  replay: on how many FILEs the recorded settings end with the recorded segments, of those whose record has allocations
  with --browser, the milliseconds in which headless Chromium draws views of 100,000 events

The large file has --gb gigabytes in a temporary folder ($TMPDIR), and is removed. Run it on an idle machine.
"""

import argparse
import glob
import json
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS, STACKS, DEPTH, BASE, SLOT = 400, 2000, 12, 0x7F0000000000, 1 << 24
EVENT = 68  # bytes of one, about


class Record:
    """Writes a snapshot of PyTorch's, event by event, as its pickler does, so that a file of gigabytes takes little memory; and what is live."""

    def __init__(self, file):
        self.file, self.buffer, self.memo, self.stacks = file, bytearray(), {}, {}
        self.events = self.live = self.peak = self.peak_event = 0
        self.buffer += b"\x80\x04}(" + self.word("segments") + b"]" + self.word("device_traces") + b"](]("

    def word(self, text):
        if text in self.memo:
            return self.memo[text]
        self.memo[text] = b"j" + struct.pack("<I", len(self.memo))
        encoded = text.encode()
        return b"X" + struct.pack("<I", len(encoded)) + encoded + b"r" + self.memo[text][1:]

    def stack(self, n):
        if n in self.stacks:
            return self.stacks[n]
        out = b"]("
        for depth in range(DEPTH):
            out += b"}(" + self.word("name") + self.word("call_%d" % (n >> depth)) + self.word("filename") + self.word("/src/model_%d.py" % depth) + self.word("line") + number(1 + (n >> depth)) + b"u"
        self.stacks[n] = b"j" + struct.pack("<I", len(self.memo))
        self.memo["stack %d" % n] = self.stacks[n]
        return out + b"e" + b"r" + self.stacks[n][1:]

    def event(self, action, slot, size):
        self.events += 1
        self.buffer += b"}(" + self.word("action") + self.word(action) + self.word("addr") + number(BASE + slot * SLOT) + self.word("size") + number(size)
        self.buffer += self.word("stream") + number(0) + self.word("time_us") + number(1_750_000_000_000_000 + self.events) + self.word("frames") + self.stack(slot * 7 % STACKS) + b"u"
        if action == "alloc":
            self.live += size
            if self.live > self.peak:
                self.peak, self.peak_event = self.live, self.events
        elif action == "free_completed":
            self.live -= size
        if len(self.buffer) > 1 << 22:
            self.file.write(self.buffer)
            self.buffer.clear()

    def end(self):
        self.file.write(self.buffer + b"eeu.")


def number(n):
    if n < 256:
        return b"K" + bytes([n])
    return b"J" + struct.pack("<i", n) if n < 1 << 31 else b"\x8a\x07" + struct.pack("<q", n)[:7]


def training(path, size):
    """Writes a training of so many bytes: in each step the blocks of all layers come, and go in reverse. Returns the peak and its event."""
    r = random.Random(1)
    with open(path, "wb") as file:
        record = Record(file)
        while record.events * EVENT < size:
            sizes = [512 * r.randint(1, 4000) for _ in range(LAYERS)]
            for slot, bytes in enumerate(sizes):
                record.event("alloc", slot, bytes)
            for slot, bytes in reversed(list(enumerate(sizes))):
                record.event("free_requested", slot, bytes)
                record.event("free_completed", slot, bytes)
        record.end()
    return record.peak, record.peak_event, record.events


def spend(command):
    """Seconds, processor seconds, MiB, and what it printed."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out


def large(memdiag, size, turns):
    with tempfile.TemporaryDirectory() as folder:
        path, page = os.path.join(folder, "large.pickle"), os.path.join(folder, "large.html")
        peak, event, events = training(path, size)
        print(f"a file of {os.path.getsize(path) / 1e6:,.0f} MB, {events:,} events")
        commands = {"end": ["show", path, "--at", "end", "--format", "json"], "peak": ["show", path, "--at", "peak", "--format", "json"], "page": ["timeline", path, "-o", page, "-q"]}
        spent = {name: [] for name in commands}
        spend([memdiag, *commands["end"]])  # has the system keep the file in memory
        for _ in range(turns):
            for name, command in commands.items():
                spent[name].append(spend([memdiag, *command]))
        told = json.loads(spent["peak"][-1][3])
        same = (told["devices"][0]["waterfall"]["live_bytes"], told["moment"]["event"]) == (peak, event)
        for name, what in ("peak", "show --at peak"), ("page", "timeline"):
            ratio = [statistics.median(each[i] for each in spent[name]) / statistics.median(each[i] for each in spent["end"]) for i in (0, 1)]
            print(f"  {what}: {ratio[0]:.2f} times the time of show --at end, {ratio[1]:.2f} times its processor time; {max(each[2] for each in spent[name]):.0f} MiB"
                  f" (show --at end: {max(each[2] for each in spent['end']):.0f} MiB)")
        print(f"  the peak and its event are {'the ones written' if same else f'WRONG: {peak} at {event} were written'}; the page has {os.path.getsize(page) / 1e6:.2f} MB")
    return same


def replays(memdiag, files):
    exact, differ, without = [], [], 0
    for path in files:
        done = subprocess.run([memdiag, "replay", path, "--format", "json"], capture_output=True)
        if done.returncode != 0:
            without += 1
            continue
        check = json.loads(done.stdout)["check"]
        (exact if check["exact"] else differ).append((os.path.basename(path), check))
    placed = sum(c["placed_as_recorded"] for _, c in exact), sum(c["allocations"] for _, c in exact)
    print(f"replay: on {len(exact)} of {len(exact) + len(differ)} files the recorded segments, and {placed[0]:,} of their {placed[1]:,} allocations at the recorded address; {without} files have no allocations")
    for name, check in differ:
        print(f"  not on {name}: {'; '.join(check['not_modelled']) or ('it does not say why' if check['settings_known'] else 'its settings are not recorded')}")


def browser():
    done = subprocess.run(["go", "test", "-count=1", "-v", "-run", "TestInABrowser/timeline/it_is_drawn", "."], cwd=os.path.join(HERE, "..", "report", "pagetest"), capture_output=True, text=True)
    found = re.search(r"(\d+ events: milliseconds to draw each view: .*)", done.stdout)
    print("page:", found[1] if found else "not measured: " + (done.stdout + done.stderr)[-300:])


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("files", nargs="*", metavar="FILE")
    about.add_argument("--memdiag", required=True, help="the program to measure")
    about.add_argument("--gb", type=float, default=2, help="size of the large file")
    about.add_argument("--turns", type=int, default=5)
    about.add_argument("--browser", action="store_true")
    options = about.parse_args()
    memdiag = os.path.abspath(options.memdiag)
    files = options.files or sorted(glob.glob(os.path.join(HERE, "../../shared/data/torch/*")))
    same = large(memdiag, options.gb * 1e9, options.turns)
    sys.stdout.flush()
    peaks = subprocess.run([sys.executable, os.path.join(HERE, "peak.py"), "--memdiag", memdiag, *files], capture_output=True, text=True)
    told = [line.split() for line in peaks.stdout.splitlines()[1:]]
    print(f"peaks: {sum('yes' in line for line in told)} of {len(told)} files as a replay by the rule of PyTorch's viewer")
    replays(memdiag, files)
    if options.browser:
        browser()
    sys.exit(not same or peaks.returncode)


main()
