"""A file in a run's folder to which lines are added: losses.csv and peaks.csv."""

from ._files import NOFOLLOW, PERMISSIONS
from ._real import os, time

# APART: seconds between writes. WAITING: lines that wait, at most, until this process is one that records.
APART, WAITING = 1.0, 10_000
# After so many errors, no more lines are added.
PATIENCE = 3


class Table:
    def __init__(self, agent, name, header):
        self.agent, self.name, self.header = agent, name, header
        self.fresh()

    def fresh(self):
        """Forgets everything: nothing is known of this process yet."""
        self.pending, self.path, self.written = [], None, 0.0
        self.errors, self.over = 0, False

    def add(self, line):
        self.pending.append(line)
        now = time.monotonic()
        if now - self.written > APART:
            self.written = now
            self.write()

    def write(self):
        """Appends the waiting lines, once this process is the one that records its rank."""
        agent = self.agent
        if agent.stopped or agent.number or not any(agent.owner.values()):
            self.over = self.over or len(self.pending) > WAITING
            if self.over:
                self.pending.clear()
            return
        flags = os.O_WRONLY | os.O_APPEND | NOFOLLOW
        if self.path is None:
            self.path = os.path.join(agent.dir, "%s%s.csv" % (self.name, agent.suffix()))
            flags |= os.O_CREAT | os.O_EXCL
        text, self.pending = (self.header if flags & os.O_EXCL else b"") + b"".join(self.pending), []
        f = os.open(self.path, flags, PERMISSIONS)  # opened each time: the program may close files that it did not open
        try:
            os.write(f, text)
        finally:
            os.close(f)

    def flush(self):
        try:
            if self.pending and not self.over:
                self.write()
        except Exception as e:
            self.failed(e)

    def failed(self, e):
        self.errors += 1
        if self.errors >= PATIENCE or isinstance(e, OSError):
            self.over = True
            self.pending.clear()
            self.agent.note("%s are no longer recorded: %s: %s" % (self.name, type(e).__name__, str(e)[:200]))
