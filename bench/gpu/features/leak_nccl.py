"""Trains one rank over NCCL, and keeps what it gathers."""

import os

import torch
import torch.distributed as dist
from torch import nn

os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
os.environ.setdefault("MASTER_PORT", "29517")
torch.cuda.set_device(0)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(256, 256).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
gathered = []  # holder: gathered
for _ in range(200):
    out = model(torch.randn(64, 256, device="cuda"))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    every = [torch.empty_like(out)]  # leak
    dist.all_gather(every, out.detach())
    gathered.append(every)
print("%.4f" % loss.item())
dist.destroy_process_group()
