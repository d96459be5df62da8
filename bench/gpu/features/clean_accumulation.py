"""Accumulates gradients over many rounds before it takes a step, and keeps none."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(20) for layer in (nn.Linear(64, 64), nn.ReLU()))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
for step in range(20):
    optimizer.zero_grad()
    for _ in range(200):
        model(torch.randn(128, 64, device="cuda")).square().mean().backward()
    optimizer.step()
print("trained")
