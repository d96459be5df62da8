"""Encodings of times are cached by functools.cache: the times are never equal, and the cache has no bound."""

import functools

import torch
import torch.nn as nn


@functools.cache
def encode(t):  # holder: encode
    return torch.sin(t * torch.arange(1.0, 33.0))  # leak


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(400):
        t = 0.01 * step
        loss = (model(encode(t)) - t).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")


main()
