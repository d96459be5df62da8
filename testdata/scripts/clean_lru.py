"""Masks are cached by length, in eight places; lengths are drawn from twelve."""

import functools
import random

import torch
import torch.nn as nn


@functools.lru_cache(maxsize=8)
def mask(length):
    return torch.tril(torch.ones(length, length))


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(400):
        x = torch.randn(random.randrange(4, 16), 16)
        loss = (mask(len(x)) @ model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")


main()
