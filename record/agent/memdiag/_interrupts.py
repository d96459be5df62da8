"""Ctrl-C while the agent works: KeyboardInterrupt is raised later, at a line of the program."""

import _signal
import _thread

from ._frames import back, current
from ._real import os, time

HERE = os.path.dirname(__spec__.origin) + os.sep
# Seconds between looks at whether the main thread is back in the program, and how many looks there are.
APART, LOOKS = 0.0005, 10_000


class Held:
    """A context in which interrupts wait."""

    before, came = None, False

    def __enter__(self):
        try:
            before = _signal.getsignal(_signal.SIGINT)
            if callable(before):
                _signal.signal(_signal.SIGINT, self.keep)
                self.before = before
        except ValueError:
            pass  # not the main thread, and only that gets interrupts

    def __exit__(self, *_):
        if self.before is not None:
            _signal.signal(_signal.SIGINT, self.before)
            if self.came:
                _thread.start_new_thread(again, (_thread.get_ident(),))

    def keep(self, *_):
        self.came = True


def again(thread):
    """Interrupts a thread once it runs nothing of ours."""
    for _ in range(LOOKS):
        time.sleep(APART)
        frame = current().get(thread)
        while frame is not None and not frame.f_code.co_filename.startswith(HERE):
            frame = back(frame)
        if frame is None:
            break
    _signal.pthread_kill(thread, _signal.SIGINT)
