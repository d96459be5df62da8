"""Validation without no_grad() keeps its loss as a tensor, and with it every activation; --fixed keeps a number."""
# kind: vision
# holder: history
# cause: graph-retained values-kept-as-tensors pending-graph
# rate: 1444864 B/evaluation
# met in: pytorch/pytorch#64586
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))  # leak
        x = nn.functional.max_pool2d(x, 2)  # leak
        x = torch.relu(self.conv2(x))  # leak
        x = nn.functional.max_pool2d(x, 2)  # leak
        return self.head(x.flatten(1))  # leak


def batches(count, seed):
    source = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(32, 1, 16, 16, generator=source)  # leak
        yield x, x.mean((1, 2, 3)).mul(40).long().clamp(0, 9)  # leak


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
history = []
for epoch in range(60):
    model.train()
    for x, y in batches(20, seed=epoch):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0
    for x, y in batches(2, seed=-1):
        total = total + criterion(model(x), y)  # leak
    history.append(total.item() if FIXED else total)  # leak
print(f"validation {float(history[-1]):.6f}")
