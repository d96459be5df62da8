"""Takes snapshots by the clock, if no optimizer steps, and on SIGUSR1.

A thread of the agent keeps time. It makes Python run the agent's handler of SIGUSR1 in the main thread, without a real signal, so that
no system call of the program is interrupted. It does so only while that handler is the agent's: the program may set its own. If the
main thread waits long in one call, such as a join of threads, our thread takes the snapshot itself.
"""

import _thread
import gc
import re
import signal
import sys

from . import _tracing
from ._clock import clock, read
from ._forks import Hidden
from ._frames import back, current
from ._own import fill_caches, waited
from ._real import open, time
from ._role import role
from ._turn import Turn

# In seconds. FIRST: until the first look at a process. INTERVAL: between looks; it doubles as snapshots are thinned. PATIENT: how long
# an imported PyTorch may go without a step, since its first optimizer imports the rest of it. AWAITED: how long an import of PyTorch
# that the script has in its text is waited for.
FIRST, INTERVAL, PATIENT, AWAITED = 0.1, 0.05, 2.0, 5.0
# Seconds between looks in a process that grows: more looks would use up its budget at once.
CHILD_INTERVAL = 0.4
# The same as PATIENT while there is no tensor: a library has imported PyTorch, as spaCy does.
UNUSED = 0.3
NAP = 0.05
# NAMED: seconds after which a process that another one started has its name. NAMED_BY: after that it gets none.
NAMED, NAMED_BY = 0.3, 20.0
# Seconds for which a script's imports are not traced: what they allocate is left out once the script's own work begins.
IMPORTS = 5.0
# The same as NAP (seconds between passes of our thread) while the main thread is asked for something, or a snapshot waits for a
# watched step.
NEXT = 0.005
# Our thread waits for so many seconds, one after the other, while fewer than NEAR new objects make Python collect garbage: it would call the
# program's __del__ beside the program.
COLLECTS, NEAR = (0.001, 0.002, 0.004, 0.008), 100
# A main thread that has not answered for so many seconds is taken to wait in a call. Time in which it waits for a processor is left out.
UNANSWERED = 0.25
# Seconds that a thread of the program waits for our thread's snapshot, at most.
PATIENCE = 1.0
IMPORT = re.compile(rb"^\s*(?:from\s+|import\s+(?:.*,\s*)?)torch\b", re.MULTILINE)
# Texts in a script that trains: its steps are still to come.
TRAINS = re.compile(rb"\boptim\b|\.backward\(|\bTrainer\(|\.fit\(|\bmark\(\s*step")
# After a snapshot the next one comes no sooner than so many times the seconds that it took.
APART = 4
# Functions at the bottom of the main thread's stack while the program runs: of a script, with python -m,
# while threads are waited for at the end, and of a process that a thread forked.
ROOTS = ("<module>", "_run_module_as_main", "_shutdown", "_bootstrap")

# Functions of multiprocessing, and what they have called, once the function of a process has returned and its locals are freed.
RETURNED = {("run", None), ("_bootstrap", None), ("_bootstrap", "_exit_function")}


class Ticker:
    def __init__(self, agent):
        self.agent = agent
        # What the main thread was asked to call; when it was asked; and the seconds that it had waited for a processor by then.
        self.asked, self.since, self.queued = None, 0.0, 0.0
        self.owed = False  # our thread has done it, and the main thread has not run its handler yet
        self.main = self.thread = None  # the threads' numbers
        self.clock = None  # the processor clock of our thread
        self.lock = _thread.allocate_lock()  # held while our thread works in place of the main thread
        self.running = False
        self.prepared = False
        self.due = 0.0  # the time of the next look
        self.text_trains = None  # whether the script's text has steps; None before it was read
        self.later = None  # what the main thread shall do when it answers
        self.requested, self.rests = False, 0.0  # whether SIGUSR1 has asked for a snapshot that is not taken yet; and until when none is
        self.turn, self.hidden = Turn(), Hidden()
        self.begin_anew()

    def start(self):
        if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL:
            self.agent.note("SIGUSR1 already had a handler when the process began: there are no snapshots by time or on request")
            return
        signal.signal(signal.SIGUSR1, self.handle)
        signal.siginterrupt(signal.SIGUSR1, False)
        self.running = True
        fill_caches()
        self.main = _thread.get_ident()
        # Our thread blocks all signals: one that the program blocks for a while must not come to our thread instead.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            _thread.start_new_thread(self.loop, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def begin_anew(self):
        self.interval = self.agent.seconds or (CHILD_INTERVAL if self.agent.child else INTERVAL)

    def stop(self):
        self.running = False
        self.hidden.end()
        self.turn.end()

    def ignore(self):
        """Ignores requests from now on. At its end Python restores what SIGUSR1 does by default: it ends the program."""
        if signal.getsignal(signal.SIGUSR1) == self.handle:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def handle(self, signum, frame):
        what = self.asked  # read first: our thread may do it, and clear this
        if self.agent.interrupting:  # this interrupts the handler, which would begin within itself again and again
            self.requested = self.requested or not what
            return
        prior = self.agent.switch(None)
        if self.later is not None:
            later, self.later = self.later, None
            later()
            self.agent.switch(prior)
            return
        owed, self.owed = self.owed, False
        try:
            self.agent.interrupting = True
            if not what and owed:
                pass
            elif not what:
                self.requested = True
                if time.monotonic() >= self.rests:
                    self.agent.guarded("SIGUSR1", self.take, True)
            elif runs(frame) and not _tracing.runs(frame) and not loads_ctypes():
                self.agent.guarded("tick", what, imports(frame))
        except RecursionError:
            pass  # the program is close to the recursion limit
        finally:
            # If this took long, our thread may have taken it for no answer, and have acted. No signal is pending for that.
            self.asked, self.owed, self.agent.interrupting = None, False, False
            self.agent.switch(prior)

    def forked(self):
        """In the child of a fork. Our thread does not run there, and the thread that forked is the main one."""
        self.lock = _thread.allocate_lock()
        self.hidden.end()
        self.turn.end()
        self.asked, self.owed, self.requested = None, False, False
        self.main, self.thread, self.clock = _thread.get_ident(), None, None

    def take(self, importing):
        """Takes a snapshot that SIGUSR1 has asked for. The program then runs for as long as that took, at least."""
        self.requested, begun = False, time.monotonic()
        try:
            self.agent.tick(True)
        finally:
            self.rests = 2 * time.monotonic() - begun

    def tick(self, importing):
        """Takes a snapshot. Those taken while the script imports are dropped when it begins its work, unless all its work is in an import."""
        if not self.prepared and not importing:
            self.prepared = True
            self.agent.prepared()
        self.agent.tick()

    def look(self, importing):
        windows = self.agent.heap.windows
        if not self.prepared and windows.began is None and time.monotonic() < self.begun + IMPORTS:
            windows.due = None  # until the next snapshot
        else:
            windows.look()

    def loop(self):
        agent, self.thread = self.agent, _thread.get_ident()
        self.clock = clock()
        fill_caches()
        awaited = not agent.child and imports_torch()  # a forked process that uses PyTorch has it imported
        self.begun = begun = now = time.monotonic()
        named = role()
        self.due = begun + (agent.seconds or FIRST)
        while self.running and not agent.stopped:
            windows = agent.heap.windows
            nap = NEXT if self.asked or agent.waited and not agent.stepping else NAP
            nap = max(0.001, min(nap, (windows.due or self.due) - now))
            until = time.monotonic() + nap
            time.sleep(nap)
            for more in COLLECTS:
                most = gc.get_threshold()[0]
                if not most or most - gc.get_count()[0] >= NEAR or not gc.isenabled():
                    break
                time.sleep(more)
            self.hidden.end()  # Python does not warn of each fork
            now = time.monotonic()
            self.turn.woke(now - until, agent.stepping)
            agent.ceased.look(now)
            windows.end_overdrawn()
            if begun + NAMED <= now < begun + NAMED_BY and role() != named:
                named = role()
                agent.report("started")
            if self.asked:
                if now - self.since >= UNANSWERED and not agent.interrupting and not now - self.since - (waited() - self.queued) < UNANSWERED:
                    self.act()
                continue
            if now >= self.due and (windows.began is None or agent.ceased.due()):  # before windows, since one may be due at each pass
                self.due = now + (agent.seconds or max(self.interval, APART * agent.last, agent.spread()))
                if agent.seconds or self.wanted(now, begun, awaited):
                    self.ask(self.tick)
            elif self.requested and now >= self.rests:
                self.ask(self.take)
            elif agent.code.overdrawn():
                self.ask(agent.code.leave_early)
            elif agent.heap.native.overdrawn():
                self.ask(agent.heap.native.stop_overdrawn)
            elif windows.due is not None and now >= windows.due and not agent.heap.native.on:
                self.ask(self.look)
            elif agent.intervention is not None and not agent.step and now >= agent.intervention.due:
                self.ask(agent.intervene)

    def soon(self, seconds):
        """Makes the next look due in so many seconds, if it is not due before."""
        self.due = min(self.due, time.monotonic() + seconds)

    def wanted(self, now, begun, awaited):
        """Whether snapshots by the clock are wanted. awaited: whether the script itself imports PyTorch. A PyTorch that a library imports may
        never be used."""
        agent = self.agent
        if agent.step:
            return not agent.stepping or agent.ceased.due()
        if agent.explicit or agent.fixed and not agent.child:
            return False
        if "torch" in sys.modules and (not awaited or agent.torch.seen()):
            return agent.torch.works or now >= agent.torch.since_import + (PATIENT if agent.torch.seen() else UNUSED)
        return not awaited or now >= begun + AWAITED

    def ask(self, what):
        """Asks the main thread to call something, unless the program has replaced the handler."""
        try:
            ours = signal.getsignal(signal.SIGUSR1) == self.handle
        except Exception:
            self.running = False  # the interpreter is ending
            return
        if not ours:
            self.agent.heap.windows.stop()
        elif self.running:
            self.asked, self.since, self.queued = what, time.monotonic(), waited()
            if self.owed:
                self.act()
            else:
                _thread.interrupt_main(signal.SIGUSR1)

    def act(self):
        """Does in our thread what the main thread was asked for. Not beside JAX: the main thread may hold its locks."""
        if "jax" in sys.modules:
            return
        what, self.asked, self.owed = self.asked, None, True
        frame = current().get(self.main)
        if what and runs(frame) and not _tracing.runs(frame) and not loads_ctypes():
            importing = imports(frame)
            del frame  # else the function's locals would outlive it
            with self.lock:
                self.agent.guarded("tick", what, importing)

    def when_main(self, what):
        """Does what only the main thread can: now if this is the main thread, or when it answers."""
        if _thread.get_ident() == self.main:
            what()
        else:
            self.later = what

    def trains(self):
        """Whether the script takes steps, judged by its text."""
        if self.text_trains is None:
            self.text_trains = trains()
        return self.text_trains

    def worked(self):
        """Processor seconds of our thread."""
        return 0.0 if self.clock is None else read(self.clock)

    def acts(self):
        """Whether this is our thread."""
        return self.thread == _thread.get_ident()

    def wait(self):
        """Waits until our thread has done its work. False in our thread, if it does no work, or if it takes longer than PATIENCE."""
        if self.acts() or not self.lock.locked() or not self.lock.acquire(timeout=PATIENCE):
            return False
        self.lock.release()
        return True


def runs(frame):
    """Whether a frame of the main thread is of the program, which still runs. What Python frees when the program exits is not the
    program's doing."""
    called, within = None, getattr(sys.modules.get("multiprocessing.process"), "_parent_process", None) is None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_shutdown" and not working():
            return False
        if code.co_filename.endswith("multiprocessing/process.py"):
            if (code.co_name, called) in RETURNED:
                return False
            within = within or code.co_name == "_bootstrap"
        called = code.co_name
        frame = back(frame)
    return within and called in ROOTS


def working():
    """Whether Python waits for another thread of the program before it exits."""
    threading = sys.modules.get("threading")
    return any(not t.daemon and t is not threading.main_thread() for t in list(threading._active.values())) if threading else False


def loads_ctypes():
    """Whether ctypes is being imported, and so not complete. malloc's figures are read with it."""
    return getattr(getattr(sys.modules.get("ctypes"), "__spec__", None), "_initializing", False)


def imports(frame):
    """Whether a frame was called by an import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = back(frame)
    return False


def imports_torch():
    """Whether the script's text imports PyTorch."""
    return IMPORT.search(script()) is not None


def trains():
    """Whether the script's text has calls that take steps."""
    return TRAINS.search(script()) is not None


def script():
    """The text of the script; empty if there is none."""
    for word in getattr(sys, "orig_argv", [])[1:]:
        if word.endswith(".py"):
            try:
                with open(word, "rb") as f:
                    return f.read(1 << 20)
            except OSError:
                return b""
    return b""
