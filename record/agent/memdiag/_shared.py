"""Segments of shared memory that multiprocessing.shared_memory makes: by stack, for as long as they have their names.

No object of the program need hold one: what is closed and not unlinked stays in memory until the machine is restarted.
"""

import os
import sys

# Segments that are followed, and frames of a stack.
MOST, DEPTH = 4_096, 48
FOLDER = "/dev/shm/"


class Shared:
    def __init__(self, agent):
        self.agent = agent
        self.made, self.count = {}, 0  # by path: the stack, the step, and a number of its own

    def start(self):
        try:
            import _posixshmem
        except ImportError:
            return
        if not os.path.isdir(FOLDER):
            return  # of macOS, which does not list them
        original, followed = _posixshmem.shm_open, self.followed

        def shm_open(*args, **kwargs):
            fd = original(*args, **kwargs)
            followed(args, kwargs, sys._getframe(1))
            return fd

        self.agent.replace(_posixshmem, "shm_open", shm_open)

    def followed(self, args, kwargs, frame):
        """Remembers a segment that was opened, if it was made."""
        path = args[0] if args else kwargs.get("path")
        flags = args[1] if len(args) > 1 else kwargs.get("flags")
        if self.agent.stopped and not self.agent.asleep or type(path) is not str or type(flags) is not int or not flags & os.O_CREAT or len(self.made) >= MOST:
            return
        frames = []
        while frame is not None and len(frames) < DEPTH:
            code = frame.f_code
            frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0))
            frame = frame.f_back
        self.count += 1
        self.made[path] = tuple(frames), self.agent.step, self.count

    def fill(self, snapshot):
        """Adds those that there are; what was unlinked is forgotten."""
        rows = []
        for path, (frames, step, n) in list(self.made.items()):
            try:
                size = os.stat(FOLDER + path.lstrip("/")).st_size
            except OSError:
                del self.made[path]
                continue
            rows.append((n, size, frames, step))
        if not self.count:
            return
        held, disk = sum(size for _, size, _, _ in rows), os.statvfs(FOLDER)
        d = snapshot.device("shm", "shared memory", space=id(self), limit=held + disk.f_bavail * disk.f_frsize, allocated=held)
        for n, size, frames, step in rows:
            snapshot.add(d, n, size, snapshot.stacks.add(frames, lambda: frames), step, 1)

    def forked(self):
        """What the parent made is the parent's."""
        self.made.clear()
