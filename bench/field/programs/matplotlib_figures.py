"""A figure is drawn every twenty steps, saved and never closed; --fixed closes it."""
# kind: plotting
# holder: Gcf.figs
# cause: container-grows cache-without-bound
# rate: ~200000 B/figure
# met in: AIS-Bonn/OCVP-object-centric-video-prediction#3
import io
import sys
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import nn

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
losses = []


def draw(losses):
    fig, ax = plt.subplots()  # leak
    ax.plot(losses[-50:])
    fig.savefig(io.BytesIO(), format="png", dpi=40)
    if FIXED:
        plt.close(fig)


for step in range(2000):
    x = torch.randn(32, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 19:
        draw(losses)
print(f"loss {loss.item():.6f}")
