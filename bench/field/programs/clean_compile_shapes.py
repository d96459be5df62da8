"""torch.compile meets four batch shapes, the last of them at a quarter of the run, and none after that."""
# kind: compile
# expect: clean
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(5000):
    shapes = 1 + min(3, step // 400)
    x = torch.randn(16 * (1 + step % shapes), 64)
    loss = (compiled(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
