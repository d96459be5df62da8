"""Keeps the batches that a loader's workers made, to look at the worst of them later."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, i):
        return torch.full((64,), float(i))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    worst = []  # holder: worst
    for batch in DataLoader(Numbers(), batch_size=8, num_workers=2):  # leak
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worst.append((loss.item(), batch))
    print("%.6f" % loss.item())
