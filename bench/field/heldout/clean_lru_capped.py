"""Positional encodings are cached for the 64 newest lengths, and new lengths go on coming."""
# kind: language
# expect: clean
import functools
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)


@functools.lru_cache(maxsize=64)
def encoding(length):
    place = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(-torch.arange(0, 32, 2) / 8.0)
    return torch.cat([torch.sin(place * rate), torch.cos(place * rate)], 1)


model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6000):
    length = random.randint(50, 400)
    loss = (model(encoding(length)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.8f}")
