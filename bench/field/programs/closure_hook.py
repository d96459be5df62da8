"""A forward hook appends the activations to a list in its closure; --fixed keeps the last only."""
# kind: vision
# holder: seen
# cause: activations-kept container-grows
# rate: 8192 B/step
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)


def watch(layer):
    seen = []

    def hook(module, inputs, output):
        if FIXED:
            seen.clear()
        seen.append(output.detach())  # leak

    layer.register_forward_hook(hook)


model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
watch(model[1])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()  # leak
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
