"""Evaluates in inference_mode, which is told to the model inside and outside, and in a generator that is left late."""

import time

import torch
import torch.nn as nn


def batch():
    x = torch.randn(64, 16)
    return x, x.sum(1, keepdim=True)


@torch.inference_mode()
def decorated(model):
    model.eval()
    x, y = batch()
    return (model(x) - y).square().mean().item()


def block(model):
    with torch.inference_mode():
        model.eval()
        x, y = batch()
        loss = (model(x) - y).square().mean().item()
        model.train()
        with torch.inference_mode(False), torch.no_grad():
            model.eval()
        return loss + model(x).mean().item()


def generator(model):
    with torch.inference_mode():
        while True:
            model.eval()
            yield model(batch()[0]).mean().item()


@torch.inference_mode()
def serves(model, seconds):
    """Snapshots by the clock fall into it."""
    end, total = time.monotonic() + seconds, torch.zeros(())
    while time.monotonic() < end:
        total = total + model(torch.ones(4, 16)).mean()
    return bool(total.isfinite())


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
print(serves(model, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
late = generator(model)
total = 0.0
for step in range(300):
    model.train()
    x, y = batch()
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        total += decorated(model)
    if step % 7 == 0:
        total += block(model)
    if step % 50 == 0 and step:
        total += next(late)
        late.close()
        late = generator(model)
print("%.8f %.8f" % (total, loss.item()))
print(serves(model, 1))
