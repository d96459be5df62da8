"""itertools.cycle over a shuffled DataLoader keeps every batch of the first round; --fixed makes iterators anew."""
# kind: loaders
# holder: batches
# cause: cycle-keeps container-grows
# rate: 8192 B/step
# met in: Lightricks/LTX-Video-Trainer#6
import itertools
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIXED = "--fixed" in sys.argv


class Numbers(Dataset):
    def __len__(self):
        return 200_000

    def __getitem__(self, i):
        return torch.full((64,), float(i % 97))


def forever(loader):
    while True:
        yield from loader


torch.manual_seed(0)
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
loader = DataLoader(Numbers(), batch_size=32, shuffle=True)
batches = forever(loader) if FIXED else itertools.cycle(loader)
for step in range(4000):
    x = next(batches)  # leak
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
