"""Leaving a dispatch mode while the program runs."""

import sys

# PATIENCE: calls and returns in a thread after which an attempt to leave the mode ends. RETRY: operators until the next attempt.
PATIENCE, RETRY = 200, 500


def leave(source, mode, frame):
    """Leaves a mode as soon as the operator that a frame has called returns."""
    mode.limit = mode.ops + RETRY
    if type(sys.getprofile()) in (type(None), Leaver):  # else the program has its own profile function
        sys.setprofile(Leaver(source, mode, frame))


class Leaver:
    """Waits for a call from a frame to return, or for the frame itself: then none of its operators is running."""

    def __init__(self, source, mode, frame):
        self.source, self.mode, self.frame = source, mode, frame
        self.patience = PATIENCE

    def __call__(self, frame, event, arg):
        self.patience -= 1
        if frame is self.frame and event in ("return", "c_return", "c_exception"):
            n = self.source.modes()
            if n > 0 and self.source.mode_at(n - 1) is self.mode and self.mode.paused and not self.source.module.is_inference_mode_enabled():
                self.patience = 0
                self.source.exit(self.mode)
        if self.patience <= 0:
            sys.setprofile(None)
