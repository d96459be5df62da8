"""Trains a compiled model with CUDA graphs, and keeps a copy of each output."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
compiled = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")
outputs = []  # holder: outputs
for _ in range(400):
    out = compiled(x)
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(out.detach().clone())  # leak
print("%.3f" % loss.item())
