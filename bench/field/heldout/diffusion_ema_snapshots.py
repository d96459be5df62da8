"""Each checkpoint of a diffusion model adds a copy of its averaged weights to a list; --fixed keeps the best."""
# kind: diffusion
# holder: snapshots
# cause: model-copies-kept
# rate: 166016 B/checkpoint
import copy
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(33, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 128))
        self.out = nn.Linear(128, 32)

    def forward(self, x, t):
        return self.out(self.net(torch.cat([x, t], 1)))


model = Denoiser()
ema = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
snapshots = []
best = float("inf")
for step in range(3000):
    x = torch.randn(64, 32) * torch.linspace(0.1, 2, 32)
    t = torch.rand(64, 1)
    noise = torch.randn(64, 32)
    loss = (model((1 - t) * x + t * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for averaged, new in zip(ema.parameters(), model.parameters()):
            averaged.lerp_(new, 0.01)
    if step % 25 == 24:
        if FIXED:
            snapshots.clear()
        best = min(best, loss.item())
        snapshots.append((loss.item(), copy.deepcopy(ema.state_dict())))  # leak
print(f"best {best:.5f}")
