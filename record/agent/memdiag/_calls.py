"""Calls memdiag's program, and returns its JSON as objects."""

import html
import json
import os
import subprocess
import tempfile
from typing import Any

from . import _program

# Exit codes of memdiag gate after it has judged: passes, leaks, cannot tell.
JUDGED = 0, 1, 4


class Result(dict[str, Any]):
    """JSON that memdiag wrote: a dict whose keys are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Decision(Result):
    """The decision of memdiag gate. Jupyter shows it as HTML; printed, it is one sentence."""

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
    found = call(["diff", "--format", "json", *map(named, snapshots)], (0,))
    try:
        return json.loads(found, object_hook=Result)
    except ValueError:
        raise RuntimeError("%s wrote no JSON: it is not memdiag's program" % _program.find()) from None


def gate(run, flags=()):
    return judged(lambda path: call(["gate", "--quiet", "--json", path, *map(str, flags), named(run)], JUDGED))


def named(path):
    """A path that the program does not take for a flag."""
    if path is None:
        raise TypeError("memdiag takes a path, not None, which memdiag.snapshot() returns in a program that is not recorded")
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError("memdiag takes a path, not %r" % (path,))
    path = os.fsdecode(path)
    return os.path.join(".", path) if path.startswith("-") else path


def judged(run):
    """Gives run a path, to which it has a gate write its decision. Returns the decision."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        path = os.path.join(folder, "gate.json")
        said = run(path)
        if not os.path.exists(path):  # as after --help
            raise RuntimeError((said or b"memdiag gate judged nothing").decode("utf-8", "replace").strip())
        with open(path, encoding="utf-8") as f:
            return Decision(json.load(f, object_hook=Result))


def start(args, starts=subprocess.run, **options):
    """Starts memdiag's program by subprocess.run, or what starts is, without input. Raises RuntimeError if it cannot be run."""
    program = _program.find()
    try:
        return starts([program, "--color", "never", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)
    except OSError as e:
        raise RuntimeError(_program.why(program, e)) from None


def call(args, codes):
    """Returns what the program prints. Raises RuntimeError with its message if it ends with another code or cannot be run."""
    done = start(args, stderr=subprocess.PIPE, check=False)
    if done.returncode not in codes:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or "%s ended with code %d" % (done.args[0], done.returncode))
    return done.stdout
