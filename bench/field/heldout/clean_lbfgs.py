"""LBFGS keeps its last 100 directions and gradients, which it has gathered after a tenth of the run, and then drops the oldest."""
# kind: training
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.02, max_iter=1, history_size=100, tolerance_grad=0, tolerance_change=0)
x = torch.rand(512, 16) * 2 - 1
y = (3 * x[:, :1]).sin() * x[:, 1:2] + x[:, 2:3].square() + 0.1 * torch.randn(512, 1)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


total = 0.0
for step in range(1000):
    total += optimizer.step(closure).item()
print(f"total {total:.4f}")
