"""Gradients are accumulated over sixteen batches, whose losses wait in a list until the optimizer steps."""
# kind: training
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
waiting = []
for batch in range(10_000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean() / 16
    loss.backward()
    waiting.append(loss.detach())
    if len(waiting) == 16:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = torch.stack(waiting).sum().item()
        waiting.clear()
print(f"loss {mean:.6f}")
