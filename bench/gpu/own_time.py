"""What memdiag itself takes of a step of 100 ms, and of a walk over 100,000 tensors: memdiag record -- python testdata/cuda/standin.py
bench/gpu/own_time.py [STEPS [TENSORS]]."""

import sys
import time

import memdiag
import torch

steps, tensors = int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 0
agent = memdiag._running
many = [torch.zeros(1, device="cuda") for _ in range(tensors)]
weight = torch.nn.Parameter(torch.zeros(1000, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
kept, times = [], []
for _ in range(steps):
    optimizer.zero_grad()
    weight.square().sum().backward()
    took = agent.took
    optimizer.step()
    times.append(agent.took - took)
    kept.append(torch.zeros(1000, device="cuda"))
    until = time.perf_counter() + 0.1
    while time.perf_counter() < until:
        pass
print("%.2f ms a step on average, %.2f in the median; walks %.3f s in all" % (1e3 * sum(times) / steps, 1e3 * sorted(times)[steps // 2], agent.holders.budget.spent))
