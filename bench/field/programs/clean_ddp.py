"""Two ranks train with gradient accumulation by no_sync() and average a metric every twenty steps."""
# kind: ddp
# expect: clean
import contextlib
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 32)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    source = torch.Generator().manual_seed(rank)
    for step in range(5000):
        last = step % 4 == 3
        with contextlib.nullcontext() if last else model.no_sync():
            x = torch.randn(32, 32, generator=source)
            loss = (model(x) - x).square().mean()
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        if step % 20 == 19:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
    if rank == 0:
        print(f"loss {mean.item() / 2:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, (port,), nprocs=2)
