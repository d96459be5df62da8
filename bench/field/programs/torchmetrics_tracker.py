"""A MetricTracker copies a metric with list states each epoch, and keeps the copies; --fixed keeps what they computed."""
# kind: metrics
# holder: tracker
# cause: metric-copies metric-not-reset
# rate: 122880 B/epoch
# met in: Lightning-AI/torchmetrics#2492
import sys

import torch
from torch import nn
from torchmetrics.classification import BinaryAveragePrecision
from torchmetrics.wrappers import MetricTracker

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
metric = BinaryAveragePrecision()
tracker = MetricTracker(metric)
best = 0.0
for epoch in range(120):
    if FIXED:
        metric.reset()
    else:
        tracker.increment()  # leak
    for step in range(40):
        x = torch.randn(256, 32)
        y = (x.sum(1) > 0).long()  # leak
        logits = model(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        (metric if FIXED else tracker).update(logits.detach(), y)  # leak
    best = max(best, float((metric if FIXED else tracker).compute()))
print(f"best {best:.6f}")
