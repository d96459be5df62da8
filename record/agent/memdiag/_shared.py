"""Segments of shared memory from multiprocessing.shared_memory and os.memfd_create, by stack. They are recorded as long as they have names
or are open.

No object of the program needs to hold one: a segment that is closed but not unlinked stays in memory until the machine is restarted.
"""

import sys

from ._real import open, os

# Segments that are followed, at most; and frames of a stack.
MOST, DEPTH = 4_096, 48
FOLDER = "/dev/shm/"


class Shared:
    def __init__(self, agent):
        self.agent = agent
        # By path, or by inode if there is none: the stack, the step, and a number of its own.
        self.made, self.count = {}, 0

    def start(self):
        try:
            import _posixshmem
        except ImportError:
            return
        if not os.path.isdir(FOLDER):
            return  # macOS does not list them
        self.follow(_posixshmem, "shm_open", self.named)
        if hasattr(os, "memfd_create"):
            self.follow(sys.modules["os"], "memfd_create", self.nameless)

    def follow(self, owner, name, made):
        """Wraps a function, and calls made with the segment that it opens."""
        original = getattr(owner, name)

        def followed(*args, **kwargs):
            fd = original(*args, **kwargs)
            made(fd, args, kwargs, sys._getframe(1))
            return fd

        followed.__doc__, followed.__name__ = original.__doc__, name
        followed.__module__, followed.__qualname__ = owner.__name__, name  # pickle finds it by its name
        self.agent.replace(owner, name, followed)

    def named(self, fd, args, kwargs, frame):
        """Remembers a segment that was opened, if it may be new."""
        path = args[0] if args else kwargs.get("path")
        flags = args[1] if len(args) > 1 else kwargs.get("flags")
        if type(path) is str and type(flags) is int and flags & os.O_CREAT:
            self.remember(path, frame)

    def nameless(self, fd, args, kwargs, frame):
        try:
            self.remember(os.fstat(fd).st_ino, frame)
        except OSError:
            pass  # another thread has closed it

    def remember(self, key, frame):
        if self.agent.stopped and not self.agent.asleep or len(self.made) >= MOST:
            return
        frames = []
        while frame is not None and len(frames) < DEPTH:
            code = frame.f_code
            frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0))
            frame = frame.f_back
        self.count += 1
        self.made[key] = tuple(frames), self.agent.step, self.count

    def there(self):
        """The segments that still exist: the size, the stack, the step, and a number of its own. Others are forgotten."""
        made = dict(self.made)  # copied: threads of the program add to it
        sizes = opened() if any(type(key) is int for key in made) else {}
        for key in made:
            if type(key) is str:
                try:
                    sizes[key] = os.stat(FOLDER + key.lstrip("/")).st_size
                except OSError:
                    pass  # it was unlinked
            if key not in sizes:
                self.made.pop(key, None)
        return [(sizes[key], *about) for key, about in made.items() if key in sizes]

    def held(self):
        """Bytes of the segments that still exist."""
        return sum(size for size, *_ in self.there())

    def fill(self, snapshot):
        """Adds the segments that still exist."""
        if not self.count:
            return
        there, disk = self.there(), os.statvfs(FOLDER)
        held = sum(size for size, *_ in there)
        d = snapshot.device("shm", "shared memory", space=id(self), limit=held + disk.f_bavail * disk.f_frsize, allocated=held)
        for size, frames, step, n in there:
            snapshot.add(d, n, size, snapshot.stacks.add(frames, lambda: frames), step, 1)

    def forked(self):
        """Segments of the parent are not the child's."""
        self.made.clear()


def opened():
    """Nameless files in memory that this process has open or mapped: by inode, their sizes."""
    sizes = {}
    try:
        for fd in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + fd).startswith("/memfd:"):
                    at = os.stat("/proc/self/fd/" + fd)
                    sizes[at.st_ino] = at.st_size
            except OSError:
                pass  # it was closed meanwhile
        with open("/proc/self/maps", "rb") as f:
            for line in f:
                fields = line.split(None, 5)
                if len(fields) > 5 and fields[5].startswith(b"/memfd:"):
                    begin, end = fields[0].split(b"-")
                    sizes.setdefault(int(fields[4]), int(end, 16) - int(begin, 16))
    except (OSError, ValueError):
        pass
    return sizes
