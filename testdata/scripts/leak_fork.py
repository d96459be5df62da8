"""Trains in a process that multiprocessing forks, so that memory goes back to the system; keeps what it measures."""

import torch
import torch.multiprocessing as mp
import torch.nn as nn

gradients = []  # holder: gradients


def train(queue):
    torch.manual_seed(0)
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(80):
        x = torch.randn(32, 64)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        gradients.append(model.weight.grad.abs())  # leak
        optimizer.step()
    queue.put("%.6f" % sum(g.mean().item() for g in gradients))


context = mp.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=train, args=(queue,))
process.start()
print(queue.get())
process.join()
