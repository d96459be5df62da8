"""Counters of CUDA's allocator after each step, in addition to its snapshots: the run's series log in the format of docs/format.md, without
call sites.
"""

import struct

from ._budget import Budget
from ._clock import work
from ._files import NOFOLLOW
from ._real import os

# What counting may cost: seconds at the start, plus a share of the time; steps beyond that are left out. After POINTS points only every
# second step has one, after twice as many every third, …, so that a long run's log stays small.
ALLOWANCE, SHARE, POINTS = 0.05, 0.004, 50_000
# Seconds between two writes.
APART = 1.0
METERS = "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes"


class Counters:
    def __init__(self, agent, path, gpu):
        """Counts all devices of an accelerator."""
        self.agent, self.path, self.stats, devices = agent, path, gpu.stats, gpu.count()
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self.meters = [[0, 0, 0, 0] for _ in range(devices)]  # values of the last point
        self.step = self.time = 0  # of the last point
        self.phases = {}
        self.points, self.written, self.budget = 0, 0.0, Budget(agent, ALLOWANCE, SHARE)
        header = b"\x89MDSERI\n\x01\x00\x00\x00"
        table = b"".join(text(gpu.name) + varint(i) + text("") + varint(-1) + bytes(4) + varint(-1) for i in range(devices))
        self.pending = bytearray(header + xxh64(header)[:4] + record(b"D", unsigned(devices) + table))

    def count(self, step, phase, used):
        """Adds a point with the counters of the used devices."""
        if step - self.step < 1 + self.points // POINTS or not self.budget.affords():
            return
        begun = work()
        now = int(self.agent.now() * 1e6)
        # A point has differences from the last point, or from 0 in the first. The epoch is -1: unknown.
        b = varint(step - self.step) + (varint(0) if self.points else varint(-1)) + self.phase(phase)
        b += b"\x00\x00\x01" + varint(now - self.time)
        for device, last in enumerate(self.meters):
            if device not in used:
                b += bytes(5)
                continue
            stats = self.stats(device)
            for i, name in enumerate(METERS):
                n = stats[name]["all"]["current"] if name in stats else 0
                b += varint(n - last[i])
                last[i] = n
            b += b"\x00"  # snapshots have the driver's figure
        self.pending += record(b"P", b + b"\x00")
        self.step, self.time, self.points = step, now, self.points + 1
        if now - self.written > APART * 1e6:
            self.write()
            self.written = now
        self.budget.spent += work() - begun

    def phase(self, name):
        n = self.phases.get(name)
        if n is not None:
            return unsigned(n)
        self.phases[name] = len(self.phases) + 1
        return b"\x00" + text(name)

    def write(self):
        if self.pending:
            b, self.pending = self.pending, bytearray()
            f = os.open(self.path, os.O_WRONLY | os.O_APPEND | NOFOLLOW)  # opened each time: the program may close files that it did not open
            try:
                os.write(f, b)
            finally:
                os.close(f)


def unsigned(n):
    b = bytearray()
    while n > 127:
        b.append(n & 127 | 128)
        n >>= 7
    b.append(n)
    return bytes(b)


def varint(n):
    return unsigned(n << 1 if n >= 0 else -n * 2 - 1)


def text(s):
    b = s.encode("utf-8", "surrogateescape")
    return unsigned(len(b)) + b


def record(kind, content):
    b = struct.pack("<I", len(content)) + kind + content
    return b + xxh64(b)


WORD = (1 << 64) - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def mixed(lane, word):
    lane = lane + word * P2 & WORD
    return (lane << 31 | lane >> 33) * P1 & WORD


def xxh64(b):
    """The xxHash64 of bytes with seed 0, as the log has it."""
    words = struct.unpack_from("<%dQ" % (len(b) // 8), b)
    at = 0
    if len(b) >= 32:
        lanes = [P1 + P2 & WORD, P2, 0, -P1 & WORD]
        for at in range(4, len(words) + 1, 4):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words[at - 4 : at])]
        h = sum(lane << n | lane >> 64 - n for lane, n in zip(lanes, (1, 7, 12, 18)))
        for lane in lanes:
            h = ((h ^ mixed(0, lane)) * P1 + P4) & WORD
    else:
        h = P5
    h = h + len(b) & WORD
    for word in words[at:]:
        h ^= mixed(0, word)
        h = ((h << 27 | h >> 37) * P1 + P4) & WORD
    at = len(words) * 8
    if len(b) - at >= 4:
        h ^= struct.unpack_from("<I", b, at)[0] * P1 & WORD
        h = ((h << 23 | h >> 41) * P2 + P3) & WORD
        at += 4
    for byte in b[at:]:
        h ^= byte * P5 & WORD
        h = (h << 11 | h >> 53) * P1 & WORD
    h = (h ^ h >> 33) * P2 & WORD
    h = (h ^ h >> 29) * P3 & WORD
    return struct.pack("<Q", h ^ h >> 32)
