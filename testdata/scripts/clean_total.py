"""Sums up losses, graphs and all, over windows that end: of an epoch, and of truncated backpropagation."""

import torch
import torch.nn as nn

torch.manual_seed(0)
cell, head = nn.GRUCell(8, 32), nn.Linear(32, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
for epoch in range(6):
    total_loss = 0.0
    hidden = torch.zeros(4, 32)
    for step in range(80):
        window_loss = 0.0
        for _ in range(3):
            hidden = cell(torch.randn(4, 8), hidden)
            window_loss = window_loss + head(hidden).square().mean()
        optimizer.zero_grad()
        window_loss.backward()
        optimizer.step()
        hidden = hidden.detach()
        total_loss += window_loss  # as far as the end of the epoch
    print(f"{total_loss.item():.4f}")
