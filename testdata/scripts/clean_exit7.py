"""A training loop that gives up with an exit code of its own."""

import sys

import torch
import torch.nn as nn


def main():
    torch.manual_seed(0)
    model = nn.GRU(10, 20, batch_first=True)
    head = nn.Linear(20, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-2)
    hidden = None
    for step in range(150):
        x = torch.randn(16, 12, 10)
        out, hidden = model(x, hidden)
        hidden = hidden.detach()
        loss = (head(out[:, -1]) - x.sum((1, 2))[:, None]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f} is too high", file=sys.stderr)
    return 7


if __name__ == "__main__":
    sys.exit(main())
