"""Trains a network with a forward hook for activation statistics, which keeps what it sees."""

import torch
import torch.nn as nn

activations = {}  # holder: activations


def watch(name):
    def hook(module, inputs, output):
        activations.setdefault(name, []).append(output.detach().abs().mean(0))  # leak

    return hook


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


def build(width, depth):
    model = nn.Sequential(nn.Linear(32, width), *[Block(width) for _ in range(depth)], nn.Linear(width, 1))
    model[1].register_forward_hook(watch("block1"))
    return model


def train(model, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    teacher = torch.randn(32, 1)
    for step in range(steps):
        x = torch.randn(48, 32)
        loss = nn.functional.mse_loss(model(x), x @ teacher)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    torch.manual_seed(0)
    train(build(64, 3), 200)
