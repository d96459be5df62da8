"""Trains and evaluates by turns; every evaluation's predictions are kept for a later comparison."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def evaluate(model, batches, archive):
    model.eval()
    right, outputs = 0, []
    with torch.no_grad():
        for x, y in batches:
            p = F.softmax(model(x), dim=-1)  # leak
            outputs.append(p)
            right += (p.argmax(-1) == y).sum().item()
    archive.append(outputs)
    return right / sum(len(y) for _, y in batches)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters())
    held_out = [(torch.randn(100, 20), torch.randint(5, (100,))) for _ in range(4)]
    archive = []  # holder: archive
    for epoch in range(20):
        model.train()
        for _ in range(15):
            x, y = torch.randn(32, 20), torch.randint(5, (32,))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        accuracy = evaluate(model, held_out, archive)
    print(f"accuracy {accuracy:.3f} over {len(archive)} evaluations")


main()
