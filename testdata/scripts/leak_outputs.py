"""Trains a small convolutional network; a tracker keeps the logits of every batch for a report."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Tracker:
    def __init__(self):
        self.logits = []  # holder: logits
        self.targets = []

    def update(self, logits, targets):
        self.logits.append(logits)
        self.targets.append(targets)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))  # leak


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(640, 1, 16, 16), torch.randint(10, (640,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    net, tracker = Net(), Tracker()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6):
        for x, y in loader:
            optimizer.zero_grad()
            logits = net(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            tracker.update(logits.detach(), y)
        print(f"epoch {epoch} loss {loss.item():.4f}")


main()
