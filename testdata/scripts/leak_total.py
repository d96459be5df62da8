"""Trains a classifier and sums up its losses, graphs and all, for the mean of an epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.body(x))


def train(model, optimizer, batches):
    model.train()
    total_loss = 0.0
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total_loss += loss  # leak
    return total_loss / len(batches)  # holder: total_loss


def main():
    torch.manual_seed(0)
    model = Classifier(32, 64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [(torch.randn(32, 32), torch.randint(8, (32,))) for _ in range(20)] * 20
    print(f"mean {train(model, optimizer, batches).item():.4f}")


main()
