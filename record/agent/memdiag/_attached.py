"""In a program that ran before the agent came. Two censuses show what grows, without any stack. The agent leaves when memdiag does, and
leaves nothing behind.

memdiag holds a lock on a file. Whoever gets the lock knows that memdiag has ended, even if it was killed.
"""

import _signal
import _thread
import collections
import errno
import fcntl
import gc
import sys

from ._real import os, time

# APART: seconds between looks at the lock. ANSWER: seconds that the main thread has to do what it is asked for. TRIES: how often it is
# asked.
APART, ANSWER, TRIES = 0.25, 0.5, 8
# Seconds that the walk of a census may take.
WALK = 0.5
# A type has grown if it has LEAST more objects and grew by this PART; a container if it grew by this PART. MOST of each are reported.
LEAST, PART, MOST = 100, 0.02, 10
# Types of which the agent itself makes objects, too.
OURS = "weakref.ReferenceType", "torch.storage.UntypedStorage"


class Attached:
    def __init__(self, agent, folder):
        self.agent, self.leash = agent, os.path.join(folder, "leash")
        self.interval = float(agent.settings.get("census") or 0)
        self.types, self.grown = None, None
        self.done = False

    def start(self):
        self.agent.heap.malloc()  # imports ctypes
        self.census()
        self.due = time.monotonic() + self.interval
        # A signal that the program blocks for a while must not go to our thread instead.
        blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            _thread.start_new_thread(self.wait, ())
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)

    def wait(self):
        """Waits for memdiag's end, and takes the second census in time."""
        while not self.released():
            if self.done:
                return
            if self.grown is None and self.interval and time.monotonic() >= self.due:
                self.have(self.second, lambda: self.grown is not None)
                self.grown = self.grown or {}
            time.sleep(APART)
        self.have(self.detach, lambda: self.done)
        if not self.done:
            self.agent.losses.flush()
            self.agent.stopped = True  # then nothing of the agent starts in the program's threads any more
            while self.agent.working.locked():
                time.sleep(0.01)
            self.detach()

    def released(self):
        try:
            f = os.open(self.leash, os.O_RDONLY)
        except OSError as e:
            return e.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # else the folder is gone
        try:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(f)

    def have(self, what, done):
        """Makes the main thread do something or, if it does not answer, the ticker's thread."""
        for _ in range(TRIES):
            self.agent.ticker.ask(what)
            begun = time.monotonic()
            while time.monotonic() < begun + ANSWER:
                if done():
                    return
                time.sleep(0.01)

    # Censuses.

    def census(self):
        """Counts the objects of each type, and measures the containers that names lead to."""
        before, self.types = self.types, counted()
        self.agent.holders.walk({}, {}, {}, seconds=WALK, counting=True)
        return before

    def second(self, importing=False):
        agent = self.agent
        agent.holders.containers.listed = True
        before = self.census()
        grown = sorted(agent.holders.containers.grown, key=lambda c: (not c[4], c[2] - c[3]))
        grown = [{"path": path, "kind": kind, "before": first, "now": now} for path, kind, first, now, _ in grown if now - first >= PART * first]
        agent.holders.containers.listed, agent.holders.containers.grown = False, ()
        types = [{"type": name, "before": before.get(name, 0), "now": n} for name, n in self.types.items()
                 if name not in OURS and n - before.get(name, 0) >= max(LEAST, PART * before.get(name, 0))]
        types.sort(key=lambda t: t["now"] - t["before"], reverse=True)
        own = [t for t in types if "." in t["type"]]  # Python's built-in types say less, and the agent makes some
        types = own if own or grown else types
        self.grown = {"seconds": time.monotonic() - self.due + self.interval, "containers": grown[:MOST], "types": types[:MOST]}
        agent.report("started")

    # The end.

    def detach(self, importing=False):
        """Leaves the program as it was before."""
        agent = self.agent
        if self.done:
            return
        self.done = True
        agent.finish()
        agent.stopped = True
        agent.take_back()
        agent.ticker.when_main(self.leave_main)
        for name in [m for m in sys.modules if m == __package__ or m.startswith(__package__ + ".")]:
            del sys.modules[name]
        agent.report("left")

    def leave_main(self):
        """Does what only the main thread can do."""
        agent = self.agent
        agent.torch.off()
        if _signal.getsignal(_signal.SIGUSR1) == agent.ticker.handle:
            _signal.signal(_signal.SIGUSR1, _signal.SIG_DFL)


def counted():
    """How many objects of each type Python's collector knows, by the type's name.

    The list of all objects is made and freed within one call of a C function: see _objects.
    """
    types = list(map(type, gc.get_objects()))
    numbers = collections.Counter(map(id, types))
    named = dict(zip(map(id, types), types))
    out = collections.Counter()
    for i, n in numbers.items():
        out[name_of(named[i])] += n
    return out


def name_of(t):
    try:
        module, name = type.__dict__["__module__"].__get__(t), type.__dict__["__qualname__"].__get__(t)
    except Exception:
        return "?"
    return name if module == "builtins" else "%s.%s" % (module, name)
