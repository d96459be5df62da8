"""PyTorch's profiler counts the operators of some steps."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
NAMES = {"aten::addmm", "aten::mm", "aten::mean", "aten::pow", "aten::randn", "aten::relu"}


def train(steps):
    for _ in range(steps):
        loss = model(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


for profile in torch.profiler.profile, torch.autograd.profiler.profile:
    train(50)
    with profile() as profiled:
        train(20)
    print(train(200), sorted((e.key, e.count) for e in profiled.key_averages() if e.key in NAMES))
