"""A queue of maxsize=20_000 fills slowly for the whole run; --fixed has one of 8."""
# kind: loaders
# expect: filling
# holder: batches.queue
# rate: 16384 B/step
import queue
import sys
import threading
import time

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
batches = queue.Queue(maxsize=8 if FIXED else 20_000)
STEPS = 1500


def produce():
    source = torch.Generator().manual_seed(1)
    for _ in range(3 * STEPS):
        batches.put(torch.randn(64, 64, generator=source))  # fills
        time.sleep(0.002)


threading.Thread(target=produce, daemon=True).start()
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(STEPS):
    x = batches.get()
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.006)
print(f"loss {loss.item():.6f}")
