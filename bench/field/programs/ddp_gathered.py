"""Two ranks gather each other's embeddings into a bank that has no bound; --fixed bounds it to 32 steps."""
# kind: ddp
# holder: bank
# cause: collective-buffers-kept queue-without-bound container-grows
# rate: 16384 B/step
# met in: pytorch/pytorch#5811
import collections
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
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 64)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    bank = collections.deque(maxlen=32 if FIXED else None)
    source = torch.Generator().manual_seed(rank)
    for step in range(4000):
        x = torch.randn(32, 32, generator=source)
        embedding = model(x)
        gathered = [torch.empty(32, 64) for _ in range(2)]  # leak
        dist.all_gather(gathered, embedding.detach())
        bank.append(gathered)  # leak
        negatives = torch.cat([part for pair in list(bank)[-4:] for part in pair])
        loss = torch.logsumexp(embedding @ negatives.T, 1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, (port,), nprocs=2)
