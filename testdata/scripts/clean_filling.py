"""Containers with bounds that the run does not reach: a deque, a cache, a queue and a ring. Each fills, and will stop."""

import collections
import functools
import queue

import torch
import torch.nn as nn


class Ring:
    def __init__(self, places):
        self.items, self.at = [None] * places, 0

    def push(self, x):
        self.items[self.at % len(self.items)] = x
        self.at += 1


@functools.lru_cache(maxsize=100_000)
def encode(t):
    return torch.sin(t * torch.arange(1.0, 33.0))


def main():
    torch.manual_seed(0)
    model = nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    replay, waiting, ring = collections.deque(maxlen=50_000), queue.Queue(maxsize=20_000), Ring(30_000)
    for step in range(600):
        x = encode(0.01 * step)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        replay.append(torch.randn(8))
        waiting.put(torch.randn(16))
        ring.push(torch.randn(24))
    print(f"{loss.item():.4f}")


main()
