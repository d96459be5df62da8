"""Files of the run's folder."""

import errno
import os
import zlib

# The disk, or the user's part of it, is full.
FULL = errno.ENOSPC, errno.EDQUOT
# Smaller files may still be written.
LIMITS = *FULL, errno.EFBIG
COMPRESS_FROM = 64 << 10
# A run is its owner's alone; what is opened to be written is no link that somebody else put there.
PERMISSIONS = 0o600
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def write(dir, name, text):
    """A file comes into being under its name when it is whole."""
    if len(text) > COMPRESS_FROM and name.endswith(".json") and not name.startswith("."):  # memdiag reads a report as it is
        c = zlib.compressobj(1, zlib.DEFLATED, 31)
        text = c.compress(text) + c.flush()
    path = os.path.join(dir, name)
    temporary = os.path.join(dir, "." + name + ".tmp")
    try:
        try:
            os.unlink(temporary)  # left over from a process of this number that was killed
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
    """Writes over what a file has, whose room a full disk gives; False where that does not do. At least there is a file after it, if
    an empty one."""
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
