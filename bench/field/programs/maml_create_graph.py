"""Meta-learning calls backward(create_graph=True) on a copy of the model per task; --fixed calls torch.autograd.grad."""
# kind: training
# holder: -
# cause: gradient-graph-cycle
# rate: ~36000 B/task
# met in: pytorch/pytorch#4661
import copy
import sys
import warnings

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 1))


def task_curvature(seed):
    """How fast the gradient's norm changes along the gradient, on a copy that is made for the task."""
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(64, 32, generator=source)
    learner = copy.deepcopy(model)  # leak
    loss = (learner(x) - x.sum(1, keepdim=True)).square().mean()
    if FIXED:
        grads = torch.autograd.grad(loss, learner.parameters(), create_graph=True)
    else:
        loss.backward(create_graph=True)  # leak
        grads = [p.grad for p in learner.parameters()]
    norm = sum(grad.square().sum() for grad in grads)
    second = torch.autograd.grad(norm, list(learner.parameters()))
    return sum(s.square().sum() for s in second).item()


optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
total = 0.0
for task in range(3000):
    total += task_curvature(task)
    x = torch.randn(64, 32)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.5f} curvature {total / (task + 1):.3f}")
