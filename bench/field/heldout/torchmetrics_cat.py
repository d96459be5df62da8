"""CatMetric gathers the loss of each step and is never reset; --fixed uses MeanMetric."""
# kind: metrics
# holder: losses
# cause: metric-not-reset values-kept-as-tensors
# rate: 4 B/step
# met in: Lightning-AI/torchmetrics#1949
import sys

import torch
from torch import nn
from torchmetrics import CatMetric, MeanMetric

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
losses = MeanMetric() if FIXED else CatMetric()
for step in range(5000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.update(loss.detach())  # leak
print(f"mean {losses.compute().mean().item():.4f}")
