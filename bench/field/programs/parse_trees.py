"""The collector is turned off for speed, and each step's tree of a parse has cycles; --fixed collects every 100 steps."""
# kind: language
# holder: -
# cause: reference-cycle
# rate: ~16384 B/step
import gc
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
gc.disable()


class Node:
    def __init__(self, parent, vector):
        self.parent, self.vector, self.children = parent, vector, []
        if parent is not None:
            parent.children.append(self)


encoder = nn.Linear(64, 64)
optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-2)
for step in range(2500):
    x = torch.randn(64, 64)
    root = Node(None, x.mean(dim=0))
    left = Node(root, x.square())  # leak
    Node(left, x[:32].sum(dim=0))
    loss = (encoder(x) - left.vector).square().mean() + root.vector.sum() * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if FIXED and step % 100 == 99:
        gc.collect()
print(f"loss {loss.item():.6f}")
