"""A small net whose steps are next to nothing; with "leak" every second batch stays."""

import torch
import torch.nn as nn
from steps import leaks, steps

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(net.parameters())
kept = []
for i in steps(6000):
    x, y = torch.randn(64, 64), torch.randint(10, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
    if leaks and i % 2:
        kept.append(x)
