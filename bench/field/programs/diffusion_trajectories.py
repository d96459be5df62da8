"""Sampling keeps every intermediate image of each evaluation's trajectory; --fixed keeps the last image."""
# kind: diffusion
# holder: trajectories
# cause: outputs-kept container-grows
# rate: 1064960 B/evaluation
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
trajectories = []


@torch.no_grad()
def sample(count, steps=64):
    image = torch.randn(count, 1, 16, 16, generator=torch.Generator().manual_seed(1))  # leak
    frames = [image]
    for _ in range(steps):
        image = image - model(image) / steps  # leak
        frames.append(image)
    return frames


for step in range(1200):
    clean = torch.ones(32, 1, 16, 16) * torch.randn(32, 1, 1, 1)
    noise = torch.randn_like(clean)
    loss = (model(clean + noise) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        frames = sample(16)
        trajectories.append(frames[-1].mean().item() if FIXED else frames)  # leak
print(f"loss {loss.item():.6f}")
