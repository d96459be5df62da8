"""Keeps the weights in the host's memory and copies them to the GPU for each step, and keeps copies of them there."""

import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(256, 256))
optimizer = torch.optim.SGD([weight], lr=0.01)
versions = []  # holder: versions
for _ in range(300):
    loss = (torch.randn(64, 256, device="cuda") @ weight.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    versions.append(weight.detach().clone())  # leak
print("%.4f" % loss.item())
