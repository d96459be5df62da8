"""Checkpoints are staged in two buffers in turn, and a thread writes one while training fills the other."""
# kind: training
# expect: clean
import concurrent.futures
import io

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
buffers = [None, None]
writer = concurrent.futures.ThreadPoolExecutor(1)
writing = None


def write(state):
    target = io.BytesIO()
    torch.save(state, target)
    return target.tell()


size = 0
for step in range(4000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        slot = step // 50 % 2
        if writing is not None:
            size = writing.result()
        buffers[slot] = {name: value.clone() for name, value in model.state_dict().items()}
        writing = writer.submit(write, buffers[slot])
writer.shutdown()
print(f"loss {loss.item():.6f} checkpoint of {size // 1024} KiB")
