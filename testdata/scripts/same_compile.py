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


if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for _ in range(3):
    optimizer.step()  # the recorder may enter its mode
    interrupted(torch.randn(4, 8))
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], "frames", torch._dynamo.utils.counters["frames"]["total"])
