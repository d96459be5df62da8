"""Early stopping keeps a state dict at each improvement, and forgets to drop the last best; --fixed keeps one."""
# kind: training
# holder: best
# cause: model-copies-kept container-grows
# rate: ~70000 B/epoch
import copy
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class EarlyStopping:
    def __init__(self):
        self.best = []
        self.loss = float("inf")

    def see(self, loss, model):
        if loss < self.loss:
            self.loss = loss
            if FIXED:
                self.best.clear()
            self.best.append(copy.deepcopy(model.state_dict()))  # leak


model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(512, 64)
y = torch.randn(512, 64)
stopping = EarlyStopping()
for epoch in range(400):
    for part, target in zip(x.split(32), y.split(32)):
        loss = (model(part) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        stopping.see((model(x) - y).square().mean().item(), model)
print(f"loss {stopping.loss:.6f}")
