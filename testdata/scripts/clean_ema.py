"""Trains with gradient accumulation, an exponential moving average, checkpoints and an evaluation."""

import copy
import io

import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for mine, new in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(new, 1 - self.decay)


def evaluate(model, batches):
    with torch.no_grad():
        return sum(F.cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 8))
    ema = EMA(model, 0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    held_out = [(torch.randn(64, 32), torch.randint(8, (64,))) for _ in range(3)]
    losses, best, last = [], float("inf"), None
    for step in range(250):
        for _ in range(2):
            x, y = torch.randn(32, 32), torch.randint(8, (32,))
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        losses.append(loss.item())
        if step % 50 == 49:
            score = evaluate(ema.model, held_out)
            if score < best:
                best, last = score, io.BytesIO()
                torch.save(model.state_dict(), last)
    print(f"{len(losses)} losses, best {best:.4f}, checkpoint of {last.tell()} bytes")


main()
