"""Trains on sequences of varying lengths with a static cache, so that the allocator's cache fills for long, and keeps none."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters())
cache = torch.zeros(512, 128, device="cuda")
for step in range(400):
    x = torch.randn(16, random.randrange(16, 256), 128, device="cuda")
    out = model(x)
    cache[step % 512] = out.detach()[0, 0]
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained")
