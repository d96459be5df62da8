"""Logs what memdiag knows to the run that the program has open with W&B, MLflow or TensorBoard.

It logs live and reserved memory at each snapshot, and of GPUs also in between; and the verdict and the forecast, which memdiag writes to a
file beside the snapshots while it watches the run. A thread of its own does this, so that the program waits for no server. It opens and
closes no run, and uses none of the run's steps: the step is a metric of its own.
"""

import _thread
import signal
import sys

from ._own import fill_caches
from ._real import json, os, time

# Seconds between looks for new figures, and between points of GPUs' memory.
NAP, APART = 0.5, 10.0
# The search for TensorBoard's writers goes through all objects. It may take this share of the time.
SEARCH_SHARE = 0.005
# The file with the verdict is short.
MOST = 1 << 16
# After an error, a tracker pauses for so many seconds, after each further one twice as long, up to a limit.
REST, LONGEST = 1.0, 300.0
PREFIX = "memdiag/"


class Trackers:
    def __init__(self, agent, names):
        self.agent = agent
        self.all = [KINDS[name](agent) for name in names]
        self.values, self.step = {}, 0  # the newest point
        self.fresh = False
        self.verdict, self.stamp = {}, None  # memdiag's last verdict, and what identifies its file
        self.looked = None  # when GPUs were last looked at; None if a look is due

    def start(self):
        # A signal that the program waits for must not go to our thread.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            _thread.start_new_thread(self.loop, (os.getpid(),))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def point(self, devices):
        """Takes the figures of each device from a snapshot."""
        for t in self.all:
            t.seen()
        for d in devices:
            if "allocated" in d["meters"]:
                self.meters("%s%d" % (d["kind"], d["index"]), d["meters"]["allocated"], d["meters"].get("reserved"))
        self.step, self.fresh, self.looked = self.agent.step, True, None

    def meters(self, device, live, reserved):
        self.values["live_bytes/" + device] = live
        if reserved is not None:
            self.values["reserved_bytes/" + device] = reserved

    def loop(self, pid):
        fill_caches()
        while not self.agent.stopped or self.agent.asleep:
            time.sleep(NAP)
            if os.getpid() != pid:
                return
            if self.agent.number or not any(self.agent.owner.values()):
                continue  # another process records, or none does yet
            self.look()

    def look(self):
        try:
            self.gpus()
            self.read()
        except Exception as e:
            self.agent.note("--log-to: %s: %s" % (type(e).__name__, str(e)[:200]))
        fresh, self.fresh = self.fresh, False
        for t in self.all:
            t.put(self.step, dict(self.values), self.verdict, fresh)

    def finish(self):
        """Reports at the program's end which trackers got nothing, or not the last points."""
        if any(self.agent.owner.values()):
            for t in self.all:
                if t.error:
                    self.agent.note("logging to %s failed at the end: %s" % (t.name, t.error))
                elif not t.found:
                    self.agent.note("nothing was logged to %s: memdiag found no open run while snapshots were taken (it sees those of %s)" % (t.name, t.opens))

    def gpus(self):
        """Adds a point of the GPUs in the last snapshot."""
        cuda, now = self.agent.torch.cuda, time.monotonic()
        if cuda is None or not cuda.recording or self.looked is not None and now < self.looked + APART:
            return
        self.looked = now
        for device in cuda.used:
            stats = cuda.gpu.stats(device)
            self.meters("%s%d" % (cuda.gpu.name, device), stats["allocated_bytes"]["all"]["current"], stats["reserved_bytes"]["all"]["current"])
            self.step, self.fresh = self.agent.step, True

    def read(self):
        """Reads memdiag's verdict on the run, if it is new."""
        try:
            f = os.open(os.path.join(self.agent.dir, self.agent.settings["standing"]), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return
        try:
            stamp = os.fstat(f)
            stamp = stamp.st_ino, stamp.st_mtime_ns
            if stamp != self.stamp:
                self.verdict, self.stamp = json.loads(os.read(f, MOST)), stamp
        finally:
            os.close(f)


class Tracker:
    """One kind of tracker. put writes to a run that it finds open."""

    def __init__(self, agent):
        self.agent = agent
        self.error = ""  # the last error; "" if something was written since
        self.rest, self.rests = REST, 0.0  # how long the next pause is, and when this one ends
        self.found, self.fresh = False, False  # whether a run was ever open; whether there is an unwritten point
        self.run, self.said = None, None  # the run that was last written to, and the verdict that it has

    def seen(self):
        """A snapshot is being taken, mostly in a thread of the program."""

    def put(self, step, values, verdict, fresh):
        """Writes what is new to the open run, if there is one."""
        self.fresh = self.fresh or fresh
        if self.error and time.monotonic() < self.rests:
            return
        try:
            self.write(step, values, verdict)
            self.error, self.rest = "", REST
        except Exception as e:
            self.error = "%s: %s" % (type(e).__name__, str(e)[:200])
            self.rests, self.rest = time.monotonic() + self.rest, min(2 * self.rest, LONGEST)

    def write(self, step, values, verdict):
        run = self.find()
        if run is None:
            self.run = None  # do not hold a run that has ended
            return
        if run != self.run:
            self.begin(run)
            self.run, self.said, self.found, self.fresh = run, None, True, bool(values)
        if self.fresh:
            self.points(run, step, values)
            self.fresh = False
        if verdict and verdict != self.said:
            self.say(run, step, verdict)
            self.said = verdict

    def begin(self, run):
        pass


def numbers(verdict):
    """The forecast as metrics; none if memory is not known to run out."""
    return {"memory_full_" + key: verdict[key] for key in ("step", "in_seconds") if verdict.get(key) is not None}


class WandB(Tracker):
    name, opens = "wandb", "wandb.init"

    def find(self):
        return getattr(sys.modules.get("wandb"), "run", None)

    def begin(self, run):
        run.define_metric(PREFIX + "step", hidden=True)
        run.define_metric(PREFIX + "*", step_metric=PREFIX + "step")

    def log(self, run, step, values):
        # Without commit, the point goes with the next row that the program logs, so that its steps do not change.
        run.log({PREFIX + "step": step, **{PREFIX + key: value for key, value in values.items()}}, commit=False)

    points = log

    def say(self, run, step, verdict):
        self.log(run, step, {"leaks": verdict["leaks"], **numbers(verdict)})
        run.summary.update({PREFIX + "verdict": verdict["verdict"], PREFIX + "finding": verdict["text"]})


class MLflow(Tracker):
    name, opens = "mlflow", "mlflow.start_run"
    open = None  # the open run of the thread that takes snapshots

    def seen(self):
        active = getattr(sys.modules.get("mlflow"), "active_run", None)
        if active is not None:
            run = active()
            self.open = None if run is None else run.info.run_id

    def find(self):
        fluent = sys.modules.get("mlflow.tracking.fluent")
        runs = getattr(fluent, "_active_run_stack", None)
        if hasattr(runs, "get_all_thread_values"):  # each thread has its own runs
            ids = [stack[-1].info.run_id for stack in list(runs.get_all_thread_values().values()) if stack]
            return self.open if self.open in ids else ids[0] if ids else None
        return self.open

    def batch(self, run, step, values, tags=()):
        import mlflow

        now, entities = int(self.agent.now() * 1000), mlflow.entities
        mlflow.MlflowClient().log_batch(run, metrics=[entities.Metric(PREFIX + k, float(v), now, step) for k, v in values.items()],
                                        tags=[entities.RunTag(k, v) for k, v in tags])

    points = batch

    def say(self, run, step, verdict):
        self.batch(run, step, {"leaks": verdict["leaks"], **numbers(verdict)}, [("memdiag.verdict", verdict["verdict"]), ("memdiag.finding", verdict["text"])])


class TensorBoard(Tracker):
    name, opens = "tensorboard", "SummaryWriter"
    spent = 0.0
    begun = None

    def find(self):
        """The open writer: the one last written to, or else the first that is found."""
        if self.run is not None and self.run[0].file_writer is self.run[1]:
            return self.run
        self.run = None
        now = time.monotonic()
        self.begun = self.begun or now
        if self.spent > SEARCH_SHARE * (now - self.begun) + 0.05:
            return None
        import gc

        before = time.thread_time()
        try:
            for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
                base = getattr(sys.modules.get(name), "SummaryWriter", None)
                for kind in () if base is None else [base, *base.__subclasses__()]:
                    for writer in gc.get_referrers(kind):
                        if type(writer) is kind and getattr(writer, "file_writer", None) is not None:
                            return writer, writer.file_writer
        finally:
            self.spent += time.thread_time() - before
        return None

    def summaries(self, run):
        return sys.modules[type(run[0]).__mro__[-2].__module__.rpartition(".")[0] + ".summary"]

    def points(self, run, step, values):
        # Not through the writer itself: it opens a new file if the program has closed it.
        for key, value in values.items():
            run[1].add_summary(self.summaries(run).scalar(PREFIX + key, value), step)

    def say(self, run, step, verdict):
        self.points(run, step, {"leaks": verdict["leaks"], **numbers(verdict)})
        run[1].add_summary(self.summaries(run).text(PREFIX + "verdict", "%s: %s" % (verdict["verdict"], verdict["text"])), step)


KINDS = {kind.name: kind for kind in (WandB, MLflow, TensorBoard)}
