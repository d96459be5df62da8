"""matplotlib's figures of a small net's predictions, one each step; with "leak" they are never closed."""

import io

import matplotlib
import torch
from steps import leaks, steps

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams["figure.max_open_warning"] = 0
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters())
x = torch.linspace(-3, 3, 100)[:, None]
for i in steps(160):
    optimizer.zero_grad()
    out = net(x)
    torch.nn.functional.mse_loss(out, torch.sin(x)).backward()
    optimizer.step()
    figure, axes = plt.subplots(2)
    axes[0].plot(x.numpy(), out.detach().numpy())
    axes[1].scatter(x.numpy(), out.detach().numpy() ** 2)
    axes[0].set_title("step %d" % i)
    figure.savefig(io.BytesIO(), dpi=50)
    if not leaks:
        plt.close(figure)
