"""Trains on images that are augmented in NumPy; the augmented copies are cached by (index, epoch)."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n):
        self.images = np.random.default_rng(0).random((n, 16, 16), dtype=np.float32)
        self.labels = np.arange(n) % 10
        self.epoch, self.cache = 0, {}  # holder: cache

    def __len__(self):
        return len(self.images)

    def augment(self, i):
        key = (i, self.epoch)
        if key not in self.cache:
            self.cache[key] = np.roll(self.images[i], self.epoch, axis=1) * np.float32(0.9)  # leak
        return self.cache[key]

    def __getitem__(self, i):
        return torch.from_numpy(self.augment(i).copy()), int(self.labels[i])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = Images(480)
    model = nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for data.epoch in range(40):
        for x, y in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    print(f"{loss.item():.4f}, {len(data.cache)} cached")


main()
