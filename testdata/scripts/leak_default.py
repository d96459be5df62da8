"""Regression; a function that smooths the loss keeps what it has seen in the list that is its default argument."""

import torch
import torch.nn as nn


def smoothed(loss, seen=[]):  # holder: seen
    seen.append(loss.detach() / 2)  # leak
    return sum(x.item() for x in seen[-10:]) / 5


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(400):
        x = torch.randn(64, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = smoothed(loss)
    print(f"{shown:.4f}")


main()
