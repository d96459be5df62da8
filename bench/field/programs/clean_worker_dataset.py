"""A dataset caches decoded samples by index in two persistent workers; all 800 indices are cached after two epochs."""
# kind: loaders
# expect: clean
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Cached(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 800

    def __getitem__(self, index):
        if index not in self.cache:
            generator = torch.Generator().manual_seed(index)
            self.cache[index] = torch.randn(3, 24, 24, generator=generator)
        return self.cache[index], index % 5


def main():
    loader = DataLoader(Cached(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(25):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
