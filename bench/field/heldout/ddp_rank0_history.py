"""Rank 0 alone keeps the statistics that all ranks send it each step; --fixed keeps a mean."""
# kind: ddp
# holder: history
# cause: collective-buffers-kept container-grows
# rate: 4096 B/step
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FIXED = "--fixed" in sys.argv


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    source = torch.Generator().manual_seed(rank)
    for step in range(4000):
        x = torch.randn(512, 32, generator=source)
        errors = (model(x) - x.sum(1, keepdim=True)).square().squeeze(1)
        optimizer.zero_grad()
        errors.mean().backward()
        optimizer.step()
        received = [torch.empty(512) for _ in range(2)] if rank == 0 else None  # leak
        dist.gather(errors.detach(), received)
        if rank == 0:
            history.append(sum(part.mean().item() for part in received) if FIXED else received)  # leak
    if rank == 0:
        print(f"error {errors.mean().item():.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, (port,), nprocs=2)
