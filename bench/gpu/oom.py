"""Fills a GPU of little memory until there is none left, and goes on."""

import torch

if torch.cuda.is_available():
    torch.cuda.set_per_process_memory_fraction(256 * 2**20 / torch.cuda.get_device_properties(0).total_memory)
kept = []  # holder: kept
weight = torch.nn.Parameter(torch.zeros(1000, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
try:
    for _ in range(1000):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
        kept.append(torch.zeros(1 << 20, device="cuda"))  # leak
except torch.OutOfMemoryError:
    print("out of memory")
