"""Runs a program with its tensors on the GPU: ongpu.py PROGRAM [ARGUMENT …]."""

import os
import runpy
import sys

import torch
import torch.utils.data


class Generator(torch.Generator):
    """PyTorch's, on the GPU like the tensors that it is for, also those of a loader's sampler."""

    def __new__(cls, device="cuda"):
        return super().__new__(cls, device=device)


torch.Generator = Generator
torch.set_default_device("cuda")
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
