"""Imports PyTorch in the forked child alone, so that the parent stays small; keeps the error of every sample."""

import multiprocessing as mp


def train(queue):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    errors = []  # holder: errors
    for _ in range(80):
        x = torch.randn(32, 64)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(model(x).detach() - x.sum(1, keepdim=True))  # leak
    queue.put("%.6f" % sum(e.abs().mean().item() for e in errors))


context = mp.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=train, args=(queue,))
process.start()
print(queue.get())
process.join()
