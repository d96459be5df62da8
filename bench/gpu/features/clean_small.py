"""Trains a small model for thousands of quick steps, and keeps none of their tensors."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5000):
    loss = model(torch.randn(128, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("%.4f" % loss.item())
