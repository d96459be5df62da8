"""A training loop; prints what it took, and a sum of all parameters to compare.

In seconds: the processor in the program, the same with the system (which hands out the pages that the C
library gives back and takes again), and by the clock.
"""

import os
import sys
import time

import torch
import torch.nn as nn

torch.manual_seed(0)
if sys.argv[1] == "conv":
    steps, shape = 400, (32, 3, 32, 32)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 64, 10),
    )
else:
    steps, shape = 30_000 if sys.argv[1] == "mlp-long" else 6000, (64, 64)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(net.parameters())
began, clock = os.times(), time.perf_counter()
for _ in range(steps):
    x, y = torch.randn(shape), torch.randint(10, shape[:1])
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
user, system = (a - b for a, b in zip(os.times()[:2], began[:2]))
print(user, user + system, time.perf_counter() - clock, sum(p.double().sum().item() for p in net.parameters()).hex())
