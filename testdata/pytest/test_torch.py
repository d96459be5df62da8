"""Training with PyTorch, as memdiag's plugin for pytest sees it."""

import pytest
import torch


def train(keep):
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(100):
        loss = model(torch.ones(4, 8)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep:
            losses.append(loss)


@pytest.mark.memdiag
def test_passes_torch():
    train(keep=False)


@pytest.mark.memdiag
def test_fails_torch():
    train(keep=True)
