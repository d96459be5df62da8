"""A replay memory of deque(maxlen=50_000) that the run is too short to fill; --fixed has one of 100."""
# kind: rl
# expect: filling
# holder: replay.items
# rate: 32 B/step
import collections
import random
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
random.seed(0)


class Replay:
    def __init__(self, capacity):
        self.items = collections.deque(maxlen=capacity)

    def push(self, *transition):
        self.items.append(transition)

    def sample(self, count):
        recent = list(self.items)[-100:]
        return map(torch.stack, zip(*random.sample(recent, min(len(recent), count))))


q = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
replay = Replay(100 if FIXED else 50_000)
state = torch.zeros(8)
for step in range(4000):
    next_state = torch.roll(state, 1) + 0.1 * torch.randn(8)  # fills
    replay.push(state, next_state)
    state = next_state
    s, n = replay.sample(16)
    loss = (q(s).sum(1) - q(n).detach().max(1).values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
