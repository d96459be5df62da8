"""Trains a tiny attention model on sequences of many lengths; masks are cached by length for ever."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.masks = {}  # holder: masks

    def mask(self, batch, length):
        key = (batch, length)
        if key not in self.masks:
            self.masks[key] = torch.full((batch, length, length), -math.inf).triu(1)  # leak
        return self.masks[key]

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = F.softmax(q @ k.transpose(1, 2) / math.sqrt(x.shape[-1]) + self.mask(x.shape[0], x.shape[1]), -1)
        return self.out(weights @ v)


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed, self.attend = nn.Embedding(vocabulary, width), Attention(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + self.attend(x))


def lengths(steps):
    """As a bucketing sampler would give them: some come again, new ones go on coming."""
    for step in range(steps):
        yield 8 + (step if step % 3 else step // 2)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Model(50, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for length in lengths(120):
        ids = torch.randint(50, (4, length + 1))
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")
