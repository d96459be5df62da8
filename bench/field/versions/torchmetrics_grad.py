"""update() with tensors that require gradients keeps their graph in the metric's sums, before torchmetrics 0.7.3."""
# kind: metrics
# needs: torch
# leaky: torchmetrics==0.7.2 setuptools==69.5.1
# mended: torchmetrics==0.7.3 setuptools==69.5.1
# met in: Lightning-AI/torchmetrics#902
# holder: error
# cause: graph-retained values-kept-as-tensors
# rate: ~10000 B/step
import torch
from torch import nn
from torchmetrics import MeanSquaredError

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
error = MeanSquaredError()
for step in range(4000):
    x = torch.randn(32, 64)
    out = model(x)  # leak
    loss = (out - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    error.update(out, x)  # leak
print(f"loss {loss.item():.6f}")
