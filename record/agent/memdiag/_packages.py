"""The versions of the installed packages that the program had imported."""

import re
import sys
import types

from ._real import os

FOLDERS = "site-packages", "dist-packages"
# At most so many packages are listed.
MOST = 500


def versions():
    """Versions by the name that the program imports. For this, nothing is imported or called."""
    out, folders = {}, {}
    for name, module in list(sys.modules.items()):
        if "." in name or name.startswith("_") or not isinstance(module, types.ModuleType) or len(out) == MOST:
            continue
        known = types.ModuleType.__getattribute__(module, "__dict__")
        file = known.get("__file__")
        if not isinstance(file, str) or not any(f in file for f in FOLDERS):
            continue
        version = known.get("__version__")
        if not isinstance(version, str):
            folder = os.path.dirname(os.path.dirname(file)) if os.path.basename(file).startswith("__init__.") else os.path.dirname(file)
            if folder not in folders:
                folders[folder] = distributions(folder)
            version = folders[folder].get(normal(name))
        if version:
            out[name] = str.__str__(version)[:64]
    return out


def normal(name):
    return re.sub("[-_.]+", "_", name).lower()


def distributions(folder):
    """Versions by name, from the names of a folder's .dist-info folders."""
    out = {}
    try:
        for entry in os.listdir(folder):
            name, dash, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and dash:
                out[normal(name)] = version
    except OSError:
        pass
    return out
