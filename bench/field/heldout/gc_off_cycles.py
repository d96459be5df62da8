"""The collector is off for speed, and each step's module and hook refer to each other; --fixed collects every 50 steps."""
# kind: training
# holder: -
# cause: reference-cycle
# rate: ~25000 B/step
import gc
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
gc.disable()


class Probe:
    """Watches one layer for one step, and knows the layer that knows it."""

    def __init__(self, width):
        self.layer = nn.Linear(width, width)  # leak
        self.layer.register_forward_hook(self.keep)
        self.seen = None

    def keep(self, layer, inputs, output):
        self.seen = output.detach()

    def __call__(self, x):
        return self.layer(x)  # leak


model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for step in range(3000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe = Probe(64)
    with torch.no_grad():
        probe(x)
    total += probe.seen.mean().item()
    if FIXED and step % 50 == 0:
        gc.collect()
print(f"loss {loss.item():.5f} total {total:.4f}")
