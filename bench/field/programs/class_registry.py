"""A class attribute lists each instance that was ever made; --fixed lists them weakly."""
# kind: rl
# holder: Episode.instances
# cause: container-grows
# rate: 8192 B/step
import sys
import weakref

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)


class Episode:
    instances = weakref.WeakSet() if FIXED else set()

    def __init__(self):
        self.frames = torch.randn(32, 64)  # leak
        self.instances.add(self)  # leak


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(5000):
    episode = Episode()
    loss = (model(episode.frames) - episode.frames).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
