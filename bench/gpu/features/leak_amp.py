"""Trains in half precision with checkpointing, and keeps each loss with its graph."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first, second = nn.Linear(64, 512).cuda(), nn.Linear(512, 64).cuda()
optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()])
scaler = torch.amp.GradScaler("cuda")
losses = []  # holder: losses
for _ in range(200):
    x, y = torch.randn(128, 64, device="cuda"), torch.randn(128, 64, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        hidden = checkpoint(lambda x: torch.relu(first(x)), x, use_reentrant=False)
        loss = nn.functional.mse_loss(second(hidden), y)  # leak
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss)
print("%.2f" % losses[-1].item())
