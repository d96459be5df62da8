"""Finds memdiag's own program: the command that was installed with this package, or else the one on PATH."""

import errno
import json
import os
import shutil

# The folder that contains this package.
SITE = os.path.dirname(os.path.dirname(os.path.abspath(__spec__.origin)))
# Errors of a file that the system cannot run; 86 is macOS's number for another processor. If the file exists, ENOENT means that its loader
# is missing.
FOREIGN = errno.ENOENT, errno.ENOEXEC, 86
HINT = "install the wheel of memdiag, put memdiag on PATH, or name it in the variable MEMDIAG"


def find():
    """The path of the program. The variable MEMDIAG comes first, then the program that came with this package: PATH may have another
    version first. Raises RuntimeError if there is none."""
    named = os.environ.get("MEMDIAG")
    path = os.path.abspath(named) if named else recorder() or installed() or shutil.which("memdiag")
    if not path:
        raise RuntimeError("memdiag's program is not here: " + HINT)
    return path


def recorder():
    """The program that records this process, if it has unpacked this package; else None."""
    try:
        settings = json.loads(os.environ["MEMDIAG_AGENT"])
        return settings["program"] if settings["agent"] == SITE else None
    except (KeyError, ValueError):
        return None


def installed():
    """The command that was installed with this package, from the list of its files, or None. Another memdiag may be installed elsewhere."""
    from importlib import metadata  # takes 20 ms

    for distribution in metadata.distributions(name="memdiag", path=[SITE]):
        # pip install --target DIR puts commands into DIR/bin, but lists them elsewhere.
        listed = [f.locate() for f in distribution.files or () if f.name == "memdiag" and f.parent.name == "bin"]
        for path in [os.path.join(SITE, "bin", "memdiag"), *map(os.path.abspath, listed)]:
            if os.path.exists(path):
                return path
    return None


def why(program, e):
    """Why the program could not be started: a sentence that says what to do."""
    if os.path.isdir(program):
        return "%s is a folder: name memdiag's program in the variable MEMDIAG, or unset it" % program
    if isinstance(e, PermissionError):
        return "%s may not be executed: chmod +x it, or install memdiag on a disk that is not mounted noexec" % program
    if e.errno in FOREIGN and os.path.exists(program):
        return "%s is built for another C library or processor: reinstall memdiag in this environment" % program
    named = " (the variable MEMDIAG names it)" if os.environ.get("MEMDIAG") else ""
    return "%s: %s%s" % (program, e.strerror, named)
