"""A thread prefetches batches into a queue of four, and is at times ahead and at times behind."""
# kind: loaders
# expect: clean
import queue
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = 2500
batches = queue.Queue(maxsize=4)


def prefetch():
    source = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        if step % 100 < 50:
            time.sleep(0.002)
        batches.put(torch.randn(128, 64, generator=source))
    batches.put(None)


threading.Thread(target=prefetch, daemon=True).start()
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while (x := batches.get()) is not None:
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
