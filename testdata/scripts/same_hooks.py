"""Autograd's graph is kept, of forward passes that checkpoint computes anew, and of tensors that hooks pack."""

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
passes, unpacked = 0, 0


class Block(torch.nn.Linear):
    def forward(self, x):
        global passes
        passes += 1
        return torch.relu(super().forward(x))


def unpack(packed):
    global unpacked
    unpacked += 1
    return packed[0]


blocks = torch.nn.ModuleList(Block(16, 16) for _ in range(3))
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
kept = []
for step in range(60):
    x = torch.randn(4, 16)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    kept.append(x.mean())
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.clone(),), unpack):
        loss = blocks[0](torch.randn(4, 16)).square().mean()
        kept.append(blocks[1](torch.randn(4, 16)).exp().mean())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(passes, unpacked, loss.item())
sum(kept).backward()
print(passes, unpacked, blocks[0].weight.grad.sum().item())
