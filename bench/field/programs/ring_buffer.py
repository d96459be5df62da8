"""A ring buffer of 20,000 places is filled one by one, for the whole run; --fixed has 64 places."""
# kind: rl
# expect: filling
# holder: ring.items
# rate: 4096 B/step
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)


class Ring:
    def __init__(self, places):
        self.items = [None] * places
        self.position = 0

    def push(self, x):
        self.items[self.position % len(self.items)] = x
        self.position += 1


ring = Ring(64 if FIXED else 20_000)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(8000):
    x = torch.randn(16, 64)  # fills
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ring.push(x)
print(f"loss {loss.item():.6f}")
