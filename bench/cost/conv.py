"""A convolutional net; with "leak" the loss of every step keeps its graph."""

import torch
import torch.nn as nn
from steps import leaks, steps

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 64, 10),
)
optimizer = torch.optim.Adam(net.parameters())
losses = []
for _ in steps(300):
    x, y = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append((loss + 0.0) if leaks else loss.item())
