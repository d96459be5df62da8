"""BinaryAUROC with list states is computed each epoch and never reset; --fixed resets it."""
# kind: metrics
# holder: auroc
# cause: metric-not-reset
# rate: 3072 B/step
# met in: Lightning-AI/torchmetrics#2921
import sys

import torch
from torch import nn
from torchmetrics.classification import BinaryAUROC

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
auroc = BinaryAUROC(thresholds=None)
for step in range(4000):
    x = torch.randn(256, 32)
    y = (x.sum(1) > 0).long()  # leak
    logits = model(x).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    auroc.update(logits.detach().sigmoid(), y)  # leak
    if step % 500 == 499:
        auroc.compute()
        if FIXED:
            auroc.reset()
print(f"loss {loss.item():.6f}")
