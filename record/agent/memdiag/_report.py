"""What this process reports to memdiag about the recording."""

import sys

from . import _claims, _exit, _files, _watch
from ._due import TICKS_ALLOWANCE, TICKS_SHARE
from ._real import json, os
from ._role import role


class Report:
    """The part of the agent that reports how the recording went."""

    def __init__(self):
        self.notes = {}  # text: how often
        self.status = 0  # the exit code that the program gave to os._exit
        self.unseen = []  # which memory of the program is not recorded
        self.packages = None  # those that the program had imported at its end

    def finish(self):
        """Called at the program's exit. If Ctrl-C interrupts it, the report is still written."""
        if os.getpid() != self.pid:
            return
        try:
            self._finish()
        except KeyboardInterrupt:
            self.report("finished")

    def _finish(self):
        self.ticker.stop()
        self.ticker.wait()
        if self.seconds and not self.affordable(TICKS_ALLOWANCE, TICKS_SHARE):
            self.note("snapshots took %.1f s, %.0f %% of the run's time, because of --every; a longer interval costs less" % (self.spent, 100 * self.spent / self.elapsed()))
        for s in self.sources:
            try:
                s.finish()
            except Exception as e:
                self.note("%s: %s" % (type(e).__name__, e))
        self.code.end()
        if self.trackers is not None:
            self.trackers.finish()
        if self.intervention is not None and self.intervention.acts and self.intervention.text():
            self.note(self.intervention.text())
        self.report("finished")
        if self.attached is None:
            self.ticker.ignore()

    def report(self, state):
        """Writes the file that memdiag reads about this process at the end."""
        self.losses.flush()
        if self.peaks is not None:
            self.peaks.flush()
        try:
            _watch.note_all(self, state != "started" and not self.stopped)
            about = {
                "pid": self.pid, "started": _claims.began("self"), "state": state, "recorded": any(self.owner.values()), "steps": self.step, "rank": self.rank,
                "snapshots": len(self.written), "notes": list(self.notes), "unseen": self.unseen,
                "python": sys.version.split()[0], "role": role(),
                "child": self.asleep or self.number > 0,
            }
            if self.attached is not None and self.attached.grown:
                about["census"] = self.attached.grown
            if state == "finished":
                about["raised"], about["exit"] = _exit.failure(), self.status
                from . import _packages

                self.packages = _packages.versions()
            if self.packages is not None:
                about["packages"] = self.packages
            if self.intervention is not None:
                about["intervention"] = self.intervention.about()
            for s in self.sources:
                about.update(s.about())
            name, code = self.settings["report"] + "%d.json" % self.pid, {}
            if about["recorded"] or about["child"] and not self.asleep:
                code = self.code.about()
            try:
                self.write(name, json.dumps({**about, **code}).encode("utf-8", "surrogateescape"))
            except OSError:
                self.squeeze(name, json.dumps(about).encode("utf-8", "surrogateescape"))
        except Exception:
            pass  # the disk is full, or the folder is gone: nothing can be reported

    def squeeze(self, name, text):
        """Reports on a full disk: in the space of the first report, or else in that of a snapshot if there are more than two."""
        if not _files.overwrite(self.dir, name, text) and len(self.written) > 2:
            self.remove(self.written.pop()[1])
            self.write(name, text)
