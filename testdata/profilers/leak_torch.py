"""Profiles a training loop that keeps activations with torch.profiler.

    pip install torch==2.15.0
    python leak_torch.py 2
    python leak_torch.py 6
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile

kept = []
linear = torch.nn.Linear(64, 64)


def forward(x):
    activations = torch.relu(linear(x))
    kept.append(activations)  # the leak
    return activations.sum()


def train(steps):
    for _ in range(steps):
        forward(torch.randn(32, 64)).backward()


held = int(sys.argv[1])
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as profiler:
    train(held)
profiler.export_chrome_trace(f"profiler_{held}.json.gz")
