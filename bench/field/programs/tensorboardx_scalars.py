"""add_scalars of tensorboardX makes a writer for each new tag, and keeps all; --fixed uses one tag."""
# kind: loggers
# holder: all_writers scalar_dict writer
# cause: cache-without-bound container-grows
# rate: ~30000 B/tag
# met in: lanpa/tensorboardX#366
import sys
import tempfile

import torch
from tensorboardX import SummaryWriter
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
with tempfile.TemporaryDirectory() as folder:
    writer = SummaryWriter(folder)
    for step in range(3000):
        x = torch.randn(32, 64)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            if FIXED:
                writer.add_scalar("loss", loss.item(), step)
            else:
                writer.add_scalars("losses", {f"step{step}": loss.item()}, step)  # leak
    writer.flush()
print(f"loss {loss.item():.6f}")
