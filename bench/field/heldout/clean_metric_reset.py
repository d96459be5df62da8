"""A collection of metrics with list states is computed and reset at the end of each epoch of twenty steps."""
# kind: metrics
# expect: clean
import torch
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC, BinaryAveragePrecision

torch.manual_seed(0)
torch.set_num_threads(1)
metrics = MetricCollection([BinaryAccuracy(), BinaryAUROC(), BinaryAveragePrecision()])
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(60):
    for step in range(20):
        x = torch.randn(256, 32)
        y = (x.sum(1) > 0).long()
        logits = model(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.update(logits.detach().sigmoid(), y)
    values = {name: float(value) for name, value in metrics.compute().items()}
    metrics.reset()
print(" ".join(f"{name} {value:.5f}" for name, value in sorted(values.items())))
