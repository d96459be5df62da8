"""The cache of a method has maxsize=16384, and fills for the whole run; --fixed has 64 and is full at once."""
# kind: loaders
# expect: filling
# holder: Batch.scale
# rate: 16384 B/step
import functools
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)


class Batch:
    def __init__(self):
        self.x = torch.randn(64, 64)  # fills

    @functools.lru_cache(maxsize=64 if FIXED else 16384)
    def scale(self):
        return float(self.x.abs().max())


model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6000):
    batch = Batch()
    loss = (model(batch.x / batch.scale()) - batch.x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
