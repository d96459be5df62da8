"""A replay memory is a deque without maxlen; --fixed gives it one of 100."""
# kind: rl
# holder: replay.items
# cause: cache-without-bound queue-without-bound container-grows
# rate: 32 B/step
# met in: hill-a/stable-baselines#716
import collections
import itertools
import random
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
random.seed(0)


class Replay:
    def __init__(self):
        self.items = collections.deque(maxlen=100 if FIXED else None)

    def push(self, *transition):
        self.items.appendleft(transition)  # leak

    def sample(self, count):
        recent = list(itertools.islice(self.items, 100))
        return map(torch.stack, zip(*random.sample(recent, min(len(recent), count))))


q = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
replay = Replay()
state = torch.zeros(8)
for step in range(4000):
    next_state = torch.roll(state, 1) + 0.1 * torch.randn(8)  # leak
    replay.push(state, next_state)
    state = next_state
    s, n = replay.sample(16)
    loss = (q(s).sum(1) - q(n).detach().max(1).values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
