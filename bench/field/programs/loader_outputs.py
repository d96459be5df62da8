"""Batches of a DataLoader are kept in a list for a later look; --fixed keeps the loss."""
# kind: loaders
# holder: hardest
# cause: container-grows
# rate: 9216 B/step
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
data = TensorDataset(torch.randn(3200, 64), torch.randn(3200, 8))
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
hardest = []
for epoch in range(40):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):  # leak
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hardest.append(loss.item() if FIXED else (loss.item(), x, y))  # leak
print(f"loss {loss.item():.6f}")
