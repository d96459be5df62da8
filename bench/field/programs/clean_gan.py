"""A GAN shows samples from fixed noise in a grid that is written over, and averages its losses in numbers."""
# kind: gan
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 256), nn.Tanh())
critic = nn.Sequential(nn.Linear(256, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, 16)
grid = torch.empty(128, 128)
averages = {"generator": 0.0, "critic": 0.0}
for step in range(2500):
    real = torch.tanh(torch.randn(64, 1) + torch.linspace(-1, 1, 256))
    fake = generator(torch.randn(64, 16))
    d_loss = loss_of(critic(real), torch.ones(64, 1)) + loss_of(critic(fake.detach()), torch.zeros(64, 1))
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = loss_of(critic(fake), torch.ones(64, 1))
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    for name, loss in (("generator", g_loss), ("critic", d_loss)):
        averages[name] += 0.01 * (loss.item() - averages[name])
    if step % 10 == 0:
        with torch.no_grad():
            samples = generator(fixed_noise).reshape(8, 8, 16, 16)
        grid.copy_(samples.permute(0, 2, 1, 3).reshape(128, 128))
print(" ".join(f"{name} {value:.5f}" for name, value in averages.items()) + f" grid {grid.mean().item():.5f}")
