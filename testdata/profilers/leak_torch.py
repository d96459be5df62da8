"""Profiles a training loop that keeps activations with torch.profiler.

    pip install torch==2.15.0
    python leak_torch.py
"""

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


for held in (2, 6):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as profiler:
        kept.clear()
        train(held)
    profiler.export_chrome_trace(f"profiler_{held}.json.gz")
