"""Keeps a copy on the CPU of what each step made on the GPU."""

import torch

kept = []  # holder: kept
weight = torch.nn.Parameter(torch.zeros(3000, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(120):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    kept.append(weight.detach().cpu())  # leak
print("%.3f" % weight.sum().item())
