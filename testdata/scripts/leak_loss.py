"""Trains a classifier and keeps every step's loss, with its graph, to draw a curve at the end."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.body(x))


def batches(n, size, features, classes, generator):
    centers = torch.randn(classes, features, generator=generator)
    for _ in range(n):
        y = torch.randint(classes, (size,), generator=generator)
        yield centers[y] + 0.5 * torch.randn(size, features, generator=generator), y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Classifier(64, 128, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    curve = []
    for x, y in batches(args.steps, 64, 64, 10, torch.Generator().manual_seed(1)):
        loss = F.cross_entropy(model(x), y)  # leak: kept below
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        curve.append(loss)
    print(f"first {curve[0].item():.4f} last {curve[-1].item():.4f}")


if __name__ == "__main__":
    main()  # holder: curve
