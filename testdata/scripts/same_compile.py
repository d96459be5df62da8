"""torch.compile, eagerly executed, traced and recompiled while steps go on, and interrupted; and a mode of the program's own."""

import os
import signal
import sys

import torch
import torch._dynamo
import torch.nn as nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)


class Count(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
counter = torch._dynamo.testing.CompileCounter() if hasattr(torch._dynamo, "testing") else None
for step in range(80):
    x = torch.randn(16 if step < 60 else 24, 8)
    loss = (compiled(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if step % 7 == 3:
        with Count() as mode:
            optimizer.step()
        print(step, mode.calls > 0)
    else:
        optimizer.step()
print(loss.item(), sum(p.double().sum().item() for p in model.parameters()))


@torch.compiler.disable
def leave():
    """Has the recorder leave its mode as soon as an operator has ended."""
    agent = getattr(sys.modules.get("memdiag"), "_running", None)
    if agent is not None:
        agent.torch.mode.paused, agent.torch.mode.limit, agent.torch.mode.watcher = True, 0, agent.torch


@torch.compile(backend="eager")
def interrupted(x):
    y = model(x)
    os.kill(os.getpid(), signal.SIGUSR1)  # for the recorder
    leave()
    return y.mean()


class Tagged(torch.Tensor):
    pass


class Plain(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.sub_(p.grad, alpha=0.01)


@torch.compile(backend="eager", fullgraph=True)
def evaluated(x):
    model.eval()
    y = model(x)
    model.train()
    return y


@torch.compile(backend="eager")
def tagged(x):
    return Tagged(x) * 2


@torch.compile(backend="eager", fullgraph=True)
def step_plain():
    plain.step()


whole = torch.compile(backend="aot_eager", fullgraph=True)(lambda x: model(x).mean())
plain = Plain(model.parameters(), {})
step_adam = torch.compile(backend="eager")(optimizer.step)
for step in range(30):
    optimizer.zero_grad()
    loss = whole(torch.randn(4, 8))
    loss.backward()
    step_plain()
    step_adam()
    tagged(evaluated(torch.randn(4, 8)))


@torch.compile(backend="eager")
def all_of_it(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for step in range(100):
    x = torch.randn(16, 8)
    for _ in range(5):
        x = x + 0.01
    all_of_it(x)
print(loss.item(), sum(p.double().sum().item() for p in model.parameters()), evaluated(torch.ones(4, 8)).sum().item())


if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
torch._dynamo.utils.counters.clear()
for _ in range(3):
    optimizer.step()  # the recorder may enter its mode
    interrupted(torch.randn(4, 8))
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], "frames", torch._dynamo.utils.counters["frames"]["total"])
