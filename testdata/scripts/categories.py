"""Trains for ten steps, and says what its tensors take by what they are for."""

import json

import torch
from torch.utils.data import DataLoader, TensorDataset


def takes(tensors):
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values())


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.BatchNorm1d(96), torch.nn.ReLU(), torch.nn.Linear(96, 3))
    model[3].bias.requires_grad_(False)
    optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    loader = DataLoader(TensorDataset(torch.randn(80, 64), torch.randint(3, (80,))), batch_size=8, num_workers=0)
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    print(json.dumps({
        "parameter": takes(model.parameters()),
        "buffer": takes(model.buffers()),
        "gradient": takes(p.grad for p in model.parameters() if p.grad is not None),
        "optimizer state": takes(v for state in optimizer.state.values() for v in state.values()),
        "input": takes([inputs, labels]),
    }))


if __name__ == "__main__":
    main()
