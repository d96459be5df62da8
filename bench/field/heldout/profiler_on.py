"""torch.profiler records the whole training, and its events pile up; --fixed has a schedule that records ten steps."""
# kind: loggers
# holder: -
# cause: host-only
# rate: ~450000 B/step
# met in: Lightning-AI/pytorch-lightning#10717
import sys
import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
plan = schedule(wait=10, warmup=2, active=10, repeat=1) if FIXED else None
with profile(activities=[ProfilerActivity.CPU], schedule=plan) as profiler:  # leak
    for step in range(1000):
        x = torch.randn(512, 256)
        loss = (model(x) - x).square().mean()  # leak
        optimizer.zero_grad()
        loss.backward()  # leak
        optimizer.step()  # leak
        profiler.step()
    print(f"loss {loss.item():.6f}")
