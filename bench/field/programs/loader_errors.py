"""Errors of bad samples are kept for a report, and their tracebacks hold the batches; --fixed keeps their texts."""
# kind: loaders
# holder: failures
# cause: error-holds-tensors
# rate: 40960 B/error
# met in: pytorch/pytorch#10348
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


def load(step):
    x = torch.randn(64, 128)  # leak
    if step % 7 == 3:
        x[step % 64, step % 128] = float("nan")
    return x


def check(x):
    bad = ~torch.isfinite(x)  # leak
    if bad.any():
        raise ValueError(f"{int(bad.sum())} values are not finite")
    return x


model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 128))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
failures = []


def train_step(step):
    x = load(step)
    loss = (model(check(x)) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


total = 0.0
for step in range(7000):
    try:
        total += train_step(step)
    except ValueError as error:
        failures.append((step, str(error) if FIXED else error))  # leak
print(f"total {total:.4f} failures {len(failures)}")
