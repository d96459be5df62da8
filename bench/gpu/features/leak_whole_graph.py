"""Captures whole steps in a CUDA graph, and keeps a copy of each loss's input."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")


def step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
seen = []  # holder: seen
for _ in range(3000):
    batch = torch.randn(32, 64, device="cuda")  # leak
    seen.append(batch)
    x.copy_(batch)
    graph.replay()
    torch.cuda.synchronize()
print("%.4f" % loss.item())
