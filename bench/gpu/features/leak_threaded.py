"""Trains in a thread that is not the one that imported PyTorch, and keeps each output."""

import threading

import torch
from torch import nn


def train():
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(20) for layer in (nn.Linear(64, 64), nn.ReLU()))).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    outputs = []  # holder: outputs
    for _ in range(300):
        out = model(torch.randn(128, 64, device="cuda"))
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append(out.detach().clone())  # leak
    print("%.4f" % loss.item())


thread = threading.Thread(target=train)
thread.start()
thread.join()
