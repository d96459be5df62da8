"""Trains on batches of two workers, through pinned memory, and keeps the batches on the GPU."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, i):
        return torch.full((1024,), float(i % 7)), torch.tensor(float(i % 3))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Squares(), batch_size=32, num_workers=2, pin_memory=True, persistent_workers=True)
    model = nn.Linear(1024, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    kept = []  # holder: kept
    for _ in range(2):
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)  # leak
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(x)
    print("%.4f" % loss.item())


if __name__ == "__main__":
    main()
