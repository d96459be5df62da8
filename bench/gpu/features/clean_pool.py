"""Allocates in a pool of its own and empties the cache at times, and keeps none."""

import torch

torch.manual_seed(0)
pool = torch.cuda.MemPool()
weight = torch.nn.Parameter(torch.randn(512, 512, device="cuda"))
optimizer = torch.optim.Adam([weight])
for step in range(400):
    with torch.cuda.use_mem_pool(pool):
        x = torch.randn(256, 512, device="cuda")
    loss = (x @ weight).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        torch.cuda.empty_cache()
print("%.3f" % loss.item())
