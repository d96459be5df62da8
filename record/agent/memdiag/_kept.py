"""Writes this process's snapshots to the run's folder, and thins them out."""

import collections
import re

from . import _claims, _files
from ._clock import work
from ._own import waited
from ._real import json, os

# Snapshots that stay. If there are more, every second one is removed and the interval doubles.
MOST = 32
# The name of a snapshot by the clock. Any other name is the user's.
TICK = re.compile(r"snapshot_t[0-9]+(_rank[0-9]+)?\.(json|pickle|pb\.gz|memdiag)")
# With so many snapshots a run may show a leak.
ENOUGH = 5


class Kept:
    """The part of the agent that writes snapshots and removes them."""

    def __init__(self):
        self.written = []  # [step or tick, name] of each snapshot of the run's series
        # The newest ones that were asked for, which stay; those that are no part of the series; and the one of these that was just taken.
        self.asked, self.repeats, self.repeated = collections.deque(maxlen=MOST), [], None
        self.forced = False  # whether somebody has asked for the snapshot that is being taken
        self.spares = False  # whether the newest snapshot must not be thinned out

    def keep(self, number, name, text, start, lighter=None):
        """Writes a snapshot that was begun at start, and makes room for it. number: None if it is no part of the series. lighter returns a
        smaller one; None if there is none."""
        try:
            self.write(name, text)
        except OSError as e:
            if lighter is not None and e.errno in _files.LIMITS:
                if self.spares and e.errno in _files.FULL and self.halve():  # the record is what best explains an out-of-memory error
                    return self.keep(number, name, text, start, lighter)
                self.note("from step %d on snapshots lack PyTorch's record of allocations: %s" % (self.step, e.strerror))
                return self.keep(number, name, lighter(), start)
            if e.errno not in _files.FULL:
                raise
            if not self.halve():
                if self.stepping or not self.step:
                    raise
                return self.note("the disk was full: there are fewer snapshots of what came after the last step")
            self.write(name, text)
        if number is None:
            self.repeated = name
            self.repeats.append(name)
            if len(self.repeats) > MOST:
                self.remove(self.repeats.pop(0))
        else:
            self.written.append([number, name])
            if self.forced:
                self.asked.append(name)
            self.thin()
        if self.child or len(self.written) == ENOUGH:
            self.report("started")  # now: multiprocessing ends its processes without atexit, and others may be killed
        self.last, self.torch.ahead = work() - start + self.torch.ahead, 0.0
        self.spent += self.last
        self.since, self.ran_before = self.elapsed(), self.ran()
        if self.number:
            _claims.charge(os.path.join(self.dir, _claims.CHILD + str(self.number)), self.took + work() - self.entered)

    def encode(self, s, step):
        b = s.blocks
        if all(n == 1 for n in b["count"]):
            del b["count"]
        if not any(b["category"]):
            del b["category"]
        return json.dumps({
            "memdiag_agent": 1, "producer": s.producer, "step": self.batches[0] if step is None and self.batches else step, "rank": None if self.number else self.rank, "phase": self.phase, "epoch": self.epoch_number,
            **({} if self.peaks is None else {"batch": self.peaks.batch, "length": self.peaks.length}),
            "time_us": int(self.now() * 1e6), "waited_us": int(min(waited(), 1e9) * 1e6), "devices": s.devices, "frames": s.stacks.frames,
            "stacks": s.stacks.stacks, "blocks": b, "categories": list(s.categories.items()), "holders": s.holders, "at": s.at, "anew": s.anew, "native": s.native, "events": self.events,
            "notes": s.notes,
            "role": self.role(), "pid": self.pid, **({"awaits_steps": True} if step is None and not self.step and not self.child and self.ticker.trains() else {}),
        }, separators=(",", ":")).encode("utf-8", "surrogateescape")

    def thin(self):
        if self.fixed or self.seconds or sum(name not in self.asked for _, name in self.written) <= MOST:
            return
        if self.stepping:
            self.every *= 2
        else:
            self.ticker.interval *= 2
        kept, last = [], None
        for i, (number, name) in enumerate(self.written):
            stretch = number // self.every if isinstance(number, int) else i // 2
            if stretch != last or name in self.asked or self.spares and i == len(self.written) - 1:
                kept.append([number, name])
                last = stretch
            else:
                self.remove(name)
        self.written = kept

    def halve(self):
        """Removes every second snapshot on a full disk; False if the interval is the user's, or there would be too few."""
        if self.fixed or self.seconds or len(self.written) < 4:
            return False
        for _, name in self.written[1::2]:
            self.remove(name)
        self.written = self.written[::2]
        if self.stepping:
            self.every *= 2
        else:
            self.ticker.interval *= 2
        self.note("the disk was full: there are fewer snapshots")
        return True

    def remove(self, name):
        try:
            os.unlink(os.path.join(self.dir, name))
        except FileNotFoundError:
            pass  # a process that counts steps has taken over and removed it

    def drop_ticks(self):
        if self.number:
            self.drop()
        self.written, self.number = [], 0
        for name in os.listdir(self.dir):
            if TICK.fullmatch(name) and ("_rank" not in name or self.rank is not None and name.endswith((self.suffix() + ".json", self.suffix() + ".pickle"))):
                self.remove(name)

    def drop(self):
        """Removes what this process has written."""
        for _, name in self.written:
            self.remove(name)
        self.written = []

    def drop_after(self, step):
        """Removes the snapshots that this process has written of later steps."""
        for entry in [w for w in self.written if isinstance(w[0], int) and w[0] > step]:
            self.remove(entry[1])
            self.written.remove(entry)

    def write(self, name, text):
        _files.write(self.dir, name, text)
