"""Where memdiag's own program is: the command that was installed with this package, or else the one on PATH."""

import os
import shutil

HINT = "install the wheel of memdiag, put memdiag on PATH, or name it in the variable MEMDIAG"


def find():
    """The path of the program. The variable MEMDIAG comes first, then what came with the installed package: another
    version may be first on PATH. FileNotFoundError if there is none."""
    path = os.environ.get("MEMDIAG") or installed() or shutil.which("memdiag")
    if not path:
        raise FileNotFoundError("memdiag's program is not here: " + HINT)
    return path


def installed():
    """The command that was installed with the package, by the list of its files; None without one."""
    from importlib import metadata  # takes 20 ms

    try:
        files = metadata.distribution("memdiag").files
    except metadata.PackageNotFoundError:
        return None
    for f in files or ():
        if f.name == "memdiag" and f.parent.name == "bin":
            path = os.path.abspath(f.locate())
            return path if os.path.exists(path) else None
    return None
