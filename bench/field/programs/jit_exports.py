"""Each checkpoint is traced for an export with torch.jit, whose compiled classes stay for the process's life; --fixed traces once."""
# kind: compile
# holder: -
# cause: compiled-anew host-only
# rate: ~40000 B/export
# met in: pytorch/pytorch#61095
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.ReLU())])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
traced = None
x = torch.randn(64, 32)
total = 0.0
for step in range(500):
    for part in x.split(8):
        loss = (model(part) - part).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if traced is None or not FIXED:
        traced = torch.jit.trace(model, x, check_trace=False)  # leak
    with torch.no_grad():
        total += traced(x).mean().item()
print(f"total {total:.5f}")
