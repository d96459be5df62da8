"""Keeps a copy of the weights whenever the loss is better than ever, and forgets to drop the last one."""

import copy

import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
checkpoints, best = [], float("inf")  # holder: checkpoints
x = torch.randn(64, 16)
for step in range(120):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < best:
        best = loss.item()
        checkpoints.append(copy.deepcopy(model.state_dict()))  # leak
print("%.6f %d" % (best, len(checkpoints)))
