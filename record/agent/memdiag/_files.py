"""Files of the run's folder."""

import errno
import zlib

from ._real import os

# The disk is full, or the user's quota.
FULL = errno.ENOSPC, errno.EDQUOT
# With these errors, smaller files may still be written.
LIMITS = *FULL, errno.EFBIG
COMPRESS_FROM = 64 << 10
# A run belongs to its owner alone. A file that is opened to write must not be a link that somebody else put there.
PERMISSIONS = 0o600
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def write(dir, name, text):
    """Writes a file. It appears under its name only when it is complete."""
    if len(text) > COMPRESS_FROM and name.endswith(".json") and not name.startswith("."):  # memdiag reads reports uncompressed
        c = zlib.compressobj(1, zlib.DEFLATED, 31)
        text = c.compress(text) + c.flush()
    path = os.path.join(dir, name)
    temporary = os.path.join(dir, "." + name + ".tmp")
    try:
        try:
            os.unlink(temporary)  # left by a killed process with the same number
        except FileNotFoundError:
            pass
        f = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PERMISSIONS)
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(f, view):]
        finally:
            os.close(f)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def overwrite(dir, name, text):
    """Writes text in the space that a file already has, for a full disk. Returns False if that fails; the file may then be empty or
    incomplete."""
    try:
        f = os.open(os.path.join(dir, name), os.O_CREAT | os.O_WRONLY | NOFOLLOW, PERMISSIONS)
        try:
            whole = os.write(f, text) == len(text)
            os.ftruncate(f, len(text))
        finally:
            os.close(f)
    except OSError:
        return False
    return whole
