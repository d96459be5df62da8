"""Checkpoints of model and optimizer go to memory every ten steps, and only the newest five and the best are kept."""
# kind: callbacks
# expect: clean
import copy
import io

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
checkpoints, best, best_loss = [], None, float("inf")
history = []
for step in range(4000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    if step % 10 == 9:
        to = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, to)
        checkpoints.append(to.getvalue())
        del checkpoints[:-5]
        mean = sum(history[-10:]) / 10
        if mean < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), mean
        history = history[-100:]
print(f"loss {best_loss:.5f} {len(checkpoints)}")
