"""Each epoch lists its outputs and targets, computes a score of them, and starts with new lists; epochs are long."""
# kind: metrics
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(64, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
score = 0.0
for epoch in range(7):
    outputs, targets = [], []
    for step in range(1000):
        x = torch.randn(32, 64)
        y = torch.randint(0, 16, (32,))
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append(out.detach())
        targets.append(y)
    score = (torch.cat(outputs).argmax(-1) == torch.cat(targets)).float().mean().item()
print(f"score {score:.5f}")
