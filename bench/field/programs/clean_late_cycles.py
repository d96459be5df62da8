"""Each step's trace and its records refer to each other; the collector frees them some hundred steps late."""
# kind: training
# expect: clean
import torch
from torch import nn


class Record:
    def __init__(self, trace, value):
        self.trace = trace
        self.value = value


class Trace:
    def __init__(self):
        self.records = []

    def note(self, value):
        self.records.append(Record(self, value))

    def mean(self):
        return torch.stack([record.value.mean() for record in self.records]).mean().item()


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for step in range(6000):
    trace = Trace()
    x = torch.randn(32, 64)
    hidden = torch.relu(model[0](x))
    trace.note(hidden.detach())
    out = model[2](hidden)
    trace.note(out.detach())
    loss = (out - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += trace.mean()
print(f"loss {loss.item():.6f} total {total:.3f}")
