"""Keeps a pinned copy of what each step made, which PyTorch rounds up to a power of two."""

import torch

kept = []  # holder: kept
weight = torch.nn.Parameter(torch.zeros(3000, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(120):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    kept.append(torch.ones(3000, device="cpu").pin_memory())  # leak
print("%.3f" % weight.sum().item())
