"""Tensors and keys that count what they are asked, while tensors are kept."""

import collections

import torch

torch.manual_seed(0)
asked = collections.Counter()


class Counted(torch.Tensor):
    @property
    def grad(self):
        asked["grad"] += 1
        return torch.Tensor.grad.__get__(self)

    @property
    def grad_fn(self):
        asked["grad_fn"] += 1
        return torch.Tensor.grad_fn.__get__(self)

    def untyped_storage(self):
        asked["storage"] += 1
        return super().untyped_storage()


class Key:
    def __hash__(self):
        asked["hash"] += 1
        return 1


net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
kept, keyed = [], {Key(): [torch.ones(3)]}
for step in range(60):
    y = net(torch.randn(4, 16))
    y.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept += y.detach(), net(torch.randn(4, 16)).sum(), y.detach().clone().as_subclass(Counted)
print(sorted(asked.items()))
