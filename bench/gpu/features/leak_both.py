"""Trains on the GPU, and keeps each output as an array of NumPy's."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.Adam(model.parameters())
outputs = {}  # holder: outputs
for step in range(300):
    x = torch.randn(128, 64, device="cuda")
    out = model(x)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs[step] = out.detach().cpu().numpy()  # leak
print("%.4f" % loss.item())
