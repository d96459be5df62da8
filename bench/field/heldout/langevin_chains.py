"""An energy model's persistent chains move by Langevin steps on from the last, with the graph of all moves; --fixed detaches them."""
# kind: diffusion
# holder: chains
# cause: graph-retained
# rate: 8192 B/move
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
energy = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-4)
chains = torch.rand(32, 64, requires_grad=True)
total = 0.0
for step in range(1500):
    for _ in range(5):
        slope = torch.autograd.grad(energy(chains).sum(), chains)[0]
        moved = chains - 0.5 * slope + 0.02 * torch.randn(32, 64)  # leak
        chains = moved.clamp(-1, 1)  # leak
        if FIXED:
            chains = chains.detach().requires_grad_()
    data = torch.tanh(torch.randn(32, 64) + 0.5)
    loss = energy(data).mean() - energy(chains.detach()).mean()
    loss = loss + 0.01 * energy(data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(f"total {total:.4f}")
