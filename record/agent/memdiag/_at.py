"""What the program's threads do when a snapshot is taken. It shows that a run reached its work, even if the work leaves nothing in memory."""

from ._frames import back, current
from ._real import os

# Threads that are recorded, at most; and frames of each, from the innermost.
THREADS, DEPTH = 8, 64
OURS = os.path.dirname(__spec__.origin)


def fill(snapshot, ours):
    """Adds the stacks of all threads except ours."""
    for thread, frame in list(current().items()):
        if thread == ours or len(snapshot.at) == THREADS:
            continue
        while frame is not None and frame.f_code.co_filename.startswith(OURS):
            frame = back(frame)
        frames = []
        while frame is not None and len(frames) < DEPTH:
            code = frame.f_code
            frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0))
            frame = back(frame)
        if frames:
            snapshot.at.append(snapshot.stacks.add(("at", *frames), lambda: frames))
