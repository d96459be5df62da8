"""A critic's gradient penalties are logged as tensors, each with its twice differentiable graph; --fixed logs numbers."""
# kind: gan
# holder: penalties
# cause: graph-retained values-kept-as-tensors
# rate: ~12000 B/step
# met in: caogang/wgan-gp#21
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
critic = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
generator = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)


def gradient_penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()  # leak
    score = critic(between).sum()  # leak
    (gradient,) = torch.autograd.grad(score, between, create_graph=True)  # leak
    return (gradient.norm(dim=1) - 1).square().mean()  # leak


penalties = []
for step in range(2500):
    real = torch.randn(32, 64) + 1
    fake = generator(torch.randn(32, 16))
    penalty = gradient_penalty(real, fake.detach())
    loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
    c_optimizer.zero_grad()
    loss.backward()
    c_optimizer.step()
    penalties.append(penalty.item() if FIXED else penalty)  # leak
    if step % 5 == 4:
        g_loss = -critic(fake).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
print(f"loss {loss.item():.6f} penalty {sum(float(p) for p in penalties[-100:]) / 100:.6f}")
