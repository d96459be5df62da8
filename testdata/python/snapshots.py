"""Takes snapshots with memdiag.snapshot(): after steps that memdiag does not watch, and twice in a step."""

import gc
import json
import os
import warnings

import torch

import memdiag

warnings.simplefilter("ignore")  # looking at all objects makes some warn


def live():
    """The bytes of all storages that a tensor of the program has."""
    storages = {}
    for t in gc.get_objects():
        if isinstance(t, torch.Tensor):
            s = t.untyped_storage()
            storages[s.data_ptr()] = s.nbytes()
    return sum(storages.values())


def recorded(path):
    with open(path) as f:
        return next(d["meters"]["allocated"] for d in json.load(f)["devices"] if d["kind"] == "cpu")


model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept, taken = [], []
for step in range(1, 1001):
    hidden = model[:2](torch.randn(16, 32))
    loss = model[2:](hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(hidden.detach().clone())
    if step % 50 == 0:
        taken.append((live(), memdiag.snapshot()))
before = taken[-1][1]
more = [torch.randn(1000) for _ in range(5)]
after = memdiag.snapshot()

assert len({path for _, path in taken} | {after}) == len(taken) + 1
wrong = [(os.path.basename(path), recorded(path), truth) for truth, path in taken if recorded(path) != truth]
assert not wrong, wrong
assert recorded(after) - recorded(before) == sum(t.nbytes for t in more)
print(before, after)
