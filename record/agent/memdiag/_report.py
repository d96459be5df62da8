"""What memdiag reads at the end about this process."""

import json
import os
import sys

from . import _claims, _exit, _files
from ._due import TICKS_ALLOWANCE, TICKS_SHARE
from ._role import role


class Report:
    """The part of the agent that says what became of the recording."""

    def __init__(self):
        self.notes = {}  # text: times
        self.status = 0  # that the program gave to os._exit
        self.unseen = []  # what of the program's memory is not recorded
        self.packages = None  # as the program had imported them at its end

    def finish(self):
        """At the program's exit. An interrupt has nothing but this left to end."""
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

    def report(self, state):
        """What memdiag reads at the end about this process."""
        self.losses.flush()
        if self.peaks is not None:
            self.peaks.flush()
        try:
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
            pass  # the disk is full, or the folder is gone: there is nowhere to say it

    def squeeze(self, name, text):
        """Says on a full disk that it is full: where the first report stands, which has room, or else in place of
        a snapshot, unless there are but two."""
        if not _files.overwrite(self.dir, name, text) and len(self.written) > 2:
            self.remove(self.written.pop()[1])
            self.write(name, text)
