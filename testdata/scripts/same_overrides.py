"""A subclass of tensors, and a mode, that count what they are asked."""

import collections

import torch
from torch.overrides import TorchFunctionMode

torch.manual_seed(0)
asked = collections.Counter()


class Counted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked["tensor", str(func).split(" at 0x")[0]] += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Counts(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        asked["mode", str(func).split(" at 0x")[0]] += 1
        return func(*args, **(kwargs or {}))


net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
kept = []
with Counts():
    for step in range(60):
        y = net(torch.randn(4, 16).as_subclass(Counted))
        y.as_subclass(torch.Tensor).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept += y.detach(), net(torch.randn(4, 16)).sum()
for (what, func), n in sorted(asked.items()):
    print(n, what, func)
