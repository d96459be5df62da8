"""A dataset caches each augmented sample in the workers, by a key that is new every epoch; --fixed keys by the sample."""
# kind: loaders
# holder: cache
# cause: cache-without-bound
# rate: 3072 B/sample
# met in: pytorch/pytorch#62066
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIXED = "--fixed" in sys.argv
torch.set_num_threads(1)


class Images(Dataset):
    def __init__(self, count):
        self.count = count
        self.epoch = torch.zeros((), dtype=torch.long).share_memory_()
        self.cache = {}

    def __len__(self):
        return self.count

    def decode(self, i):
        source = torch.Generator().manual_seed(i)
        return torch.randn(3, 16, 16, generator=source)  # leak

    def __getitem__(self, i):
        key = i if FIXED else (i, int(self.epoch))
        if key not in self.cache:
            self.cache[key] = self.decode(i)  # leak
        return self.cache[key], i % 10


def main():
    torch.manual_seed(0)
    data = Images(200)
    loader = DataLoader(data, batch_size=20, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(200):
        data.epoch.fill_(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
