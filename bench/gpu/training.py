"""A transformer that trains: training.py small|large STEPS [history], with PyTorch's own record of allocations alone. It prints what a
step took in microseconds, in the median, on average, and on average of the second half, and the loss."""

import statistics
import sys
import time

import torch
from torch import nn

if sys.argv[3:] == ["history"]:
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=100_000)
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # the losses are compared; to warn only would let attention be inexact
gpu = "cuda" if torch.cuda.is_available() else "cpu"
width, layers, batch, length = {"small": (256, 4, 8, 64), "large": (1024, 12, 16, 256)}[sys.argv[1]]
layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, 64)).to(gpu)
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(batch, length, width, device=gpu), torch.randn(batch, length, 64, device=gpu)
steps, times = int(sys.argv[2]), []
for _ in range(steps):
    begun = time.perf_counter()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    times.append(time.perf_counter() - begun)
times = times[steps // 10 :]
later = times[len(times) // 2 :]
print("%.0f %.0f %.0f %r" % (1e6 * statistics.median(times), 1e6 * statistics.mean(times), 1e6 * statistics.mean(later), value))
