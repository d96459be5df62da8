"""functools.lru_cache on a method: its keys hold self, and each batch is a new object; --fixed caches in the object."""
# kind: loaders
# holder: Batch.scale
# cause: cache-without-bound
# rate: 16384 B/step
# met in: AllenInstitute/ipfx#495
import functools
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)


class Batch:
    def __init__(self):
        self.x = torch.randn(64, 64)  # leak

    @functools.lru_cache(maxsize=None)
    def scale(self):
        return float(self.x.abs().max())


class LightBatch(Batch):
    def scale(self):
        if not hasattr(self, "_scale"):
            self._scale = float(self.x.abs().max())
        return self._scale


make = LightBatch if FIXED else Batch
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6000):
    batch = make()
    loss = (model(batch.x / batch.scale()) - batch.x).square().mean()  # leak
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
