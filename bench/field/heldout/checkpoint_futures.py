"""Checkpoints are staged for a writer thread, and the list of its futures keeps each staged state; --fixed drops those done."""
# kind: training
# holder: pending
# cause: staging-kept model-copies-kept
# rate: 148800 B/checkpoint
import concurrent.futures
import io
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


def write(state):
    target = io.BytesIO()
    torch.save(state, target)
    return state, target.tell()


class Checkpointer:
    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.pending = []
        self.saved = 0

    def save(self, model):
        state = {name: value.clone() for name, value in model.state_dict().items()}  # leak
        self.pending.append(self.pool.submit(write, state))  # leak
        self.saved += 1
        if FIXED:
            self.pending = [future for future in self.pending if not future.done()]


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 80))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
checkpointer = Checkpointer()
for step in range(3000):
    x = torch.randn(32, 64)
    loss = nn.functional.cross_entropy(model(x), x.argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        checkpointer.save(model)
checkpointer.pool.shutdown()
print(f"loss {loss.item():.6f} saved {checkpointer.saved}")
