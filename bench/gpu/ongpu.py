"""Runs a program with its tensors on the GPU: ongpu.py PROGRAM [ARGUMENT …]. MEMDIAG_HISTORY=1 has PyTorch record alone."""

import os
import runpy
import sys

import torch

torch.set_default_device("cuda")
if os.environ.get("MEMDIAG_HISTORY"):
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=100_000)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
