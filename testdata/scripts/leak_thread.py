"""Trains in a thread, as a program with a window or a server does, and keeps every prediction for a plot."""

import threading

import torch
import torch.nn as nn


class Trainer(threading.Thread):
    def __init__(self):
        super().__init__()
        self.curve = []  # holder: curve

    def run(self):
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(80):
            x = torch.randn(64, 16)
            out = model(x).detach()
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.curve.append(out + 0.0)  # leak


torch.manual_seed(0)
trainer = Trainer()
trainer.start()
trainer.join()
print("%.6f" % sum(c.sum().item() for c in trainer.curve))
