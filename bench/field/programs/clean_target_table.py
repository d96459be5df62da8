"""A table of target values is preset at one line and renewed state by state at another; it never has more entries."""
# kind: rl
# expect: clean
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
STATES = 12_000
values = [torch.zeros(16) for _ in range(STATES)]
model = nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(14_000):
    state = random.randrange(STATES)
    x = torch.randn(8, 16)
    out = model(x)
    loss = (out - values[state]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    values[state] = 0.9 * values[state] + 0.1 * out.detach().mean(0)
print(f"loss {loss.item():.5f}")
