"""Copies batches on a stream of its own ahead of the training, as prefetchers do, and keeps none."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 16)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side, batches = torch.cuda.Stream(), [torch.randn(64, 1024).pin_memory() for _ in range(8)]


def fetch(i):
    with torch.cuda.stream(side):
        return batches[i % 8].cuda(non_blocking=True)


ahead = fetch(0)
for step in range(400):
    torch.cuda.current_stream().wait_stream(side)
    x = ahead
    x.record_stream(torch.cuda.current_stream())
    ahead = fetch(step + 1)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("%.3f" % loss.item())
