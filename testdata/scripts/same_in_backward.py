"""Each parameter has an optimizer of its own, which steps within the backward pass as soon as the gradient is there."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(3)))
optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
for _ in range(400):
    loss = (model(torch.randn(8, 32)) - 1).square().mean()
    loss.backward()
print(loss.item())
