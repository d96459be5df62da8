"""A generator shuffles a stream through a buffer of 2000 arrays, full at a thirtieth of the run; its items go on changing."""
# kind: loaders
# expect: clean
import random

import numpy as np
import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
rng = np.random.default_rng(0)


def shuffled(size):
    buffer = [rng.normal(size=64).astype("float32") for _ in range(8)]
    while True:
        if len(buffer) < size:
            buffer.append(rng.normal(size=64).astype("float32"))
        i = random.randrange(len(buffer))
        item, buffer[i] = buffer[i], rng.normal(size=64).astype("float32")
        yield item


stream = shuffled(2000)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(8000):
    x = torch.from_numpy(np.stack([next(stream) for _ in range(8)]))
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.5f}")
