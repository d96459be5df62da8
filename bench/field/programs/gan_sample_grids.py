"""A GAN keeps a grid of samples from fixed noise every ten steps, for an animation; --fixed keeps the newest."""
# kind: gan
# holder: grids
# cause: outputs-kept container-grows
# rate: 65536 B/grid
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 256), nn.Tanh())
critic = nn.Sequential(nn.Linear(256, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, 16)
ones = torch.ones(64, 1)
zeros = torch.zeros(64, 1)
grids = []
for step in range(2500):
    real = torch.tanh(torch.randn(64, 1) + torch.linspace(-1, 1, 256))
    fake = generator(torch.randn(64, 16))
    d_loss = loss_of(critic(real), ones) + loss_of(critic(fake.detach()), zeros)
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = loss_of(critic(fake), ones)
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 10 == 0:
        with torch.no_grad():
            grid = generator(fixed_noise).reshape(8, 8, 16, 16)  # leak
        if FIXED:
            grids.clear()
        grids.append(grid)  # leak
print(f"generator {g_loss.item():.5f} critic {d_loss.item():.5f}")
