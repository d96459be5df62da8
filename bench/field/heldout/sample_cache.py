"""A dataset keeps each decoded image, and the run sees two thirds of them once; --fixed decodes anew."""
# kind: vision
# expect: filling
# holder: decoded
# rate: 12288 B/sample
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Images(Dataset):
    def __init__(self, count):
        self.decoded = [None] * count

    def __len__(self):
        return len(self.decoded)

    def decode(self, i):
        return torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(i))  # fills

    def __getitem__(self, i):
        if FIXED:
            return self.decode(i), i % 10
        if self.decoded[i] is None:
            self.decoded[i] = self.decode(i)  # fills
        return self.decoded[i], i % 10


model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 225, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Images(12_000), batch_size=8, shuffle=True)
for step, (x, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1000:
        break
print(f"loss {loss.item():.6f}")
