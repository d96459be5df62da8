"""Keeps the gradients of every step: what made them is C++, in a thread without Python."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []  # holder: history
for _ in range(300):
    loss = model(torch.randn(128, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()  # leak
    optimizer.step()
    history.append([p.grad for p in model.parameters()])
print("%.4f" % loss.item())
