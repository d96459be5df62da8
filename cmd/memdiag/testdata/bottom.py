"""Has a thread without a frame of Python's call the dispatch mode, once it has seen as many operators as it may."""

import _thread
import sys
import time

import torch

import memdiag

kept = torch.ones(1, device="cuda")
memdiag.snapshot()
mode = memdiag._running.torch.mode
mode.limit = 0
sys.unraisablehook = lambda unraisable: print("failed:", unraisable.exc_value)
seen = mode.ops
_thread.start_new_thread(mode.__torch_dispatch__, (torch.ops.aten.ones.default, (), ([1000],), {"device": "cpu"}))
while mode.ops == seen:
    time.sleep(0.001)
time.sleep(0.01)  # until it returns
memdiag.snapshot()
print("stopped" if type(mode).stopped or mode.paused else "recorded")
