"""Calls of memdiag's program, whose JSON comes back as objects."""

import html
import json
import os
import subprocess
import tempfile
from typing import Any

from . import _program

# What memdiag gate exits with once it has judged: passes, leaks, cannot tell.
JUDGED = 0, 1, 4


class Result(dict[str, Any]):
    """What memdiag wrote as JSON: a dict whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Decision(Result):
    """What memdiag gate decided. Jupyter shows it as HTML; printed, it is the sentence."""

    def __str__(self) -> str:
        return self["sentence"]

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self):
        e = html.escape
        rows = []
        for label, findings in ("leak", self["leaks"]), ("may leak", self["undecided"]):
            for f in findings:
                rows.append("<dt><code>%s</code> (%s)</dt>" % (e(f["place"]), label))
                for name, key in ("Held by", "held_by"), ("Cause", "cause_name"), ("Fix", "fix"):
                    if f.get(key):
                        rows.append("<dd>%s: %s</dd>" % (name, e(str(f[key]))))
        for b in self.get("budgets", ()):
            rows.append("<dt><code>%s</code> (budget %s)</dt><dd>%s</dd>" % (e(b["flag"]), e(b["budget_state"]), e(b["sentence"])))
        return "<div><p><b>%s</b>: %s</p><dl>%s</dl></div>" % (e(self["verdict"]), e(self["sentence"]), "".join(rows))


def diff(*snapshots):
    return json.loads(call(["diff", "--format", "json", *map(named, snapshots)], (0,)), object_hook=Result)


def gate(run, flags=()):
    return judged(lambda path: call(["gate", "--quiet", "--json", path, *flags, named(run)], JUDGED))


def named(path):
    """A path that the program takes for no flag."""
    path = os.fsdecode(path)
    return os.path.join(".", path) if path.startswith("-") else path


def judged(run):
    """The decision that run(path) has a gate write to path."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        path = os.path.join(folder, "gate.json")
        said = run(path)
        if not os.path.exists(path):  # as with --help
            raise RuntimeError((said or b"memdiag gate judged nothing").decode("utf-8", "replace").strip())
        with open(path, encoding="utf-8") as f:
            return Decision(json.load(f, object_hook=Result))


def call(args, codes):
    """What the program prints; RuntimeError with what it says where it ends with another code, or cannot be run."""
    program = _program.find()
    try:
        done = subprocess.run([program, "--color", "never", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError as e:
        raise RuntimeError(_program.why(program, e)) from None
    if done.returncode not in codes:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or "memdiag ended with code %d" % done.returncode)
    return done.stdout
