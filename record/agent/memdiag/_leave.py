"""Leaving a dispatch mode while the program runs."""

import sys

from ._tracing import profile

# PATIENCE: calls and returns in a thread after which an attempt to leave the mode ends. RETRY: operators until the next attempt. REFUSED: the
# same where there is no attempt.
PATIENCE, RETRY, REFUSED = 200, 500, 16


def leave(source, mode, frame):
    """Leaves a mode as soon as the operator that a frame has called returns."""
    if source.within():
        mode.limit = mode.ops + REFUSED
        return
    mode.limit = mode.ops + RETRY
    before = sys.getprofile()
    if type(before) is Leaver:
        before.mode = before.frame = None
    if before is None or type(before) is Leaver:  # else the program has its own profile function
        if mode.leaver is None:
            mode.leaver = Leaver(source)  # kept, since Python may be about to call it; see Passes
        mode.leaver.wait(mode, frame)


class Leaver:
    """Waits for a call from a frame to return, or for the frame itself: then none of its operators is running."""

    def __init__(self, source):
        self.source, self.mode, self.frame = source, None, None
        self.patience = 0

    def wait(self, mode, frame):
        self.mode, self.frame, self.patience = mode, frame, PATIENCE
        profile(self)

    def __call__(self, frame, event, arg):
        self.patience -= 1
        if frame is self.frame and event in ("return", "c_return", "c_exception"):
            n = self.source.modes()
            if n > 0 and self.source.mode_at(n - 1) is self.mode and self.mode.paused and not self.source.restores():
                self.patience = 0
                self.source.exit(self.mode)
        if self.patience <= 0:
            self.mode = self.frame = None
            profile(None)
