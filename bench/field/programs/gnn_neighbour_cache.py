"""A neighbour sampler caches each sampled subgraph by its seed nodes, which never come again; --fixed does not."""
# kind: graphs
# holder: cache
# cause: cache-without-bound
# rate: ~5700 B/step
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class NeighbourSampler:
    def __init__(self, edges, nodes):
        self.edges = edges
        self.nodes = nodes
        self.cache = {}

    def subgraph(self, seeds):
        key = tuple(seeds.tolist())
        if key in self.cache:
            return self.cache[key]
        wanted = torch.zeros(self.nodes, dtype=torch.bool)
        wanted[seeds] = True
        edges = self.edges[:, wanted[self.edges[1]]]  # leak
        if not FIXED:
            self.cache[key] = edges  # leak
        return edges


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, edges):
        source, target = edges
        summed = torch.zeros_like(x).index_add_(0, target, x[source])
        degree = torch.zeros(len(x)).index_add_(0, target, torch.ones(len(source))).clamp(min=1)
        return self.linear(summed / degree[:, None])


nodes = 1000
features = torch.randn(nodes, 16)
labels = (features.sum(1) > 0).long()
sampler = NeighbourSampler(torch.randint(0, nodes, (2, 20_000)), nodes)
layer = Convolution(16, 32)
head = nn.Linear(32, 2)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
for step in range(5000):
    seeds = torch.randperm(nodes)[:16]
    hidden = torch.relu(layer(features, sampler.subgraph(seeds)))
    loss = nn.functional.cross_entropy(head(hidden[seeds]), labels[seeds])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
