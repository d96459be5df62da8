"""A DataLoader with workers, forked and spawned; only the trainer is recorded."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        x = torch.full((4,), float(i)) / 96
        return x, (x * x).sum()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for context in "fork", "spawn":
        for x, y in DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context=context):
            loss = (model(x).squeeze(1) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(context, loss.item())


if __name__ == "__main__":
    main()
