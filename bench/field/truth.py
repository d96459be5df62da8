"""Reads the truth that stands in the header of each program of the field set; README.md describes the grammar.

    truth.py              a table of all programs but those of heldout/, which nobody looks at
    truth.py --json       all of them for other programs, one object a line
    truth.py --check      prints nothing, and fails if a header is malformed, or names a cause that memdiag does not have
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("programs", "heldout", "versions")
KINDS = (
    "vision language rl gan diffusion graphs metrics callbacks loggers plotting loaders training compile ddp numpy jax services"
).split()
KEYS = ("kind", "expect", "holder", "cause", "rate", "needs", "met in", "leaky", "mended")


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a program leaks, as its author knows it. Empty tuples and None mean that the header does not say."""

    path: str
    summary: str  # the docstring
    kind: str
    expect: str  # leak, clean or filling
    lines: tuple  # numbers of the guilty lines, from 1; naming any of them is right
    holders: tuple  # one of these is a part of the holder's path; () where Python has no holder
    causes: tuple  # ids of `memdiag explain`, any of which is right
    rate: float | None  # bytes for each event
    rate_is_rough: bool  # the objects of a library count, so that the rate is no exact sum
    event: str  # what the rate is for: step, epoch, request, …
    needs: str  # the environment where it is not field
    met_in: str  # owner/repository#number of a public report
    leaky: str  # versions only: the requirement that leaks
    mended: str  # versions only: the requirement that does not

    @property
    def name(self):
        return os.path.splitext(os.path.basename(self.path))[0]


class Malformed(Exception):
    """A header that the grammar does not allow; the text says where and why."""


def read(path):
    """Returns the Truth of the program at path, or raises Malformed."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    where = os.path.relpath(path, HERE)
    found = {}
    for key, value in re.findall(r"^# ([a-z ]+): (.*)$", text, re.M):
        if key not in KEYS:
            raise Malformed(f"{where}: no key {key!r}")
        if key in found:
            raise Malformed(f"{where}: {key} is given twice")
        found[key] = value.strip()
    expect = found.get("expect", "leak")
    if expect not in ("leak", "clean", "filling"):
        raise Malformed(f"{where}: expect is leak, clean or filling, not {expect!r}")
    mark = "fills" if expect == "filling" else "leak"
    lines = tuple(n for n, line in enumerate(text.splitlines(), 1) if re.search(r"\S  # (leak|fills)$", line))
    rate = re.fullmatch(r"(~?)(\d+) B/([a-z]+)", found.get("rate", ""))
    if "rate" in found and not rate:
        raise Malformed(f"{where}: a rate is like '512 B/step' or '~512 B/step', not {found['rate']!r}")
    if found.get("kind") not in KINDS:
        raise Malformed(f"{where}: kind is one of {', '.join(KINDS)}")
    if re.search(rf"\S  # {'leak' if mark == 'fills' else 'fills'}$", text, re.M):
        raise Malformed(f"{where}: lines of a program that is {expect} are marked '# {mark}'")
    wanted = {"leak": {"holder", "cause", "rate"}, "filling": {"holder", "rate"}, "clean": set()}[expect]
    given = {"holder", "cause", "rate"} & set(found)
    if given != wanted:
        raise Malformed(f"{where}: a program that is {expect} says {sorted(wanted)}, not {sorted(given)}")
    if bool(lines) != (expect != "clean"):
        raise Malformed(f"{where}: {len(lines)} lines are marked in a program that is {expect}")
    if ("leaky" in found) != ("mended" in found):
        raise Malformed(f"{where}: leaky and mended stand together")
    summary = ast.get_docstring(ast.parse(text)) or ""
    if not summary or "\n" in summary:
        raise Malformed(f"{where}: the docstring is one line")
    holders = tuple(found.get("holder", "-").split())
    return Truth(
        path=os.path.abspath(path),
        summary=summary,
        kind=found["kind"],
        expect=expect,
        lines=lines,
        holders=() if holders == ("-",) else holders,
        causes=tuple(found.get("cause", "").split()),
        rate=float(rate[2]) if rate else None,
        rate_is_rough=bool(rate and rate[1]),
        event=rate[3] if rate else "",
        needs=found.get("needs", "field"),
        met_in=found.get("met in", ""),
        leaky=found.get("leaky", ""),
        mended=found.get("mended", ""),
    )


def paths(folders=FOLDERS):
    """Returns the paths of all programs in these folders, sorted by folder and name."""
    return [
        os.path.join(HERE, folder, name)
        for folder in folders
        if os.path.isdir(os.path.join(HERE, folder))
        for name in sorted(os.listdir(os.path.join(HERE, folder)))
        if name.endswith(".py")
    ]


def known_causes():
    """Returns the ids of the catalogue, from docs/causes.md."""
    with open(os.path.join(HERE, "..", "..", "docs", "causes.md"), encoding="utf-8") as file:
        return set(re.findall(r"^## (\S+)$", file.read(), re.M))


def check(truths):
    """Raises Malformed where truths cannot stand together or name what does not exist."""
    names = [truth.name for truth in truths]
    for truth in truths:
        unknown = set(truth.causes) - known_causes()
        if unknown:
            raise Malformed(f"{truth.name}: memdiag explains no {', '.join(sorted(unknown))}")
        if names.count(truth.name) > 1:
            raise Malformed(f"{truth.name}: two programs have this name")


def main(arguments):
    try:
        truths = [read(path) for path in paths()]
        if "--check" in arguments:
            check(truths)
            return
    except Malformed as error:
        sys.exit(str(error))
    if "--json" in arguments:
        for truth in truths:
            print(json.dumps({"name": truth.name, **dataclasses.asdict(truth)}))
        return
    for truth in truths:
        folder = os.path.basename(os.path.dirname(truth.path))
        if folder == "heldout":
            continue
        lines = ",".join(map(str, truth.lines)) or "-"
        print(f"{folder:8} {truth.kind:9} {truth.expect:7} {truth.name:30} {lines:20} {' '.join(truth.causes) or '-'}")


if __name__ == "__main__":
    main(sys.argv[1:])
