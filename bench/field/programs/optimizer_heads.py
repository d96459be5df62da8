"""Each task adds a new head's parameters to the optimizer, which keeps those of all heads; --fixed makes it anew."""
# kind: training
# holder: param_groups optimizer
# cause: optimizer-state-stale model-copies-kept
# rate: 77400 B/task
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
body = nn.Sequential(nn.Linear(32, 128), nn.ReLU())
for parameter in body.parameters():
    parameter.requires_grad_(False)
spare = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([spare], lr=1e-3)
total = 0.0
for task in range(300):
    head = nn.Linear(128, 50)  # leak
    if FIXED:
        optimizer = torch.optim.Adam([spare], lr=1e-3)
    optimizer.add_param_group({"params": head.parameters()})  # leak
    for step in range(25):
        x = torch.randn(64, 32)
        loss = nn.functional.cross_entropy(head(body(x)), x.argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # leak
    total += loss.item()
print(f"total {total:.5f}")
