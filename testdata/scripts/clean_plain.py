"""A plain training loop over a DataLoader, with numbers logged as numbers."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(1000, 24)
    loader = DataLoader(TensorDataset(x, (x[:, :1] > 0).float()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    history = {"loss": [], "accuracy": []}
    for epoch in range(12):
        total = right = 0.0
        for xb, yb in loader:
            logits = model(xb)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
            right += ((logits > 0) == yb).float().sum().item()
            history["loss"].append(loss.item())
        history["accuracy"].append(right / 1000)
    print(f"loss {total / 1000:.4f} accuracy {history['accuracy'][-1]:.3f}")


main()
