"""Each epoch of a GAN measures the noise of its critic's gradients by hooks on the parameters, and leaves them there; --fixed removes them."""
# kind: gan
# holder: _backward_hooks hooks
# cause: hook-not-removed container-grows
# rate: 67592 B/epoch
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
critic = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
generator = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh())
of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.9))
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
score = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)


class Noise:
    """Sums a parameter's gradients and their squares."""

    def __init__(self, parameter):
        self.mean = torch.zeros_like(parameter, requires_grad=False)  # leak
        self.square = torch.zeros_like(parameter, requires_grad=False)  # leak
        self.hook = parameter.register_hook(self.add)  # leak

    def add(self, gradient):
        self.mean.add_(gradient, alpha=1 / 30)
        self.square.addcmul_(gradient, gradient, value=1 / 30)


total = 0.0
for epoch in range(90):
    noises = [Noise(parameter) for parameter in critic.parameters()]  # leak
    for _ in range(30):
        real = torch.tanh(torch.randn(64, 64) * 0.5 + 0.2)
        fake = generator(torch.randn(64, 16))
        loss = score(critic(real), ones) + score(critic(fake.detach()), zeros)
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        gradients = torch.autograd.grad(score(critic(fake), ones), list(generator.parameters()))
        for parameter, gradient in zip(generator.parameters(), gradients):
            parameter.grad = gradient
        of_generator.step()
    total += sum((noise.square - noise.mean.square()).sum().item() for noise in noises)
    if FIXED:
        for noise in noises:
            noise.hook.remove()
print(f"noise {total:.5f}")
