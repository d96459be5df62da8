"""Each epoch prepares a loader of new data, and the Accelerator keeps every one; --fixed prepares one and refills it."""
# kind: callbacks
# holder: _dataloaders
# cause: container-grows cache-without-bound
# rate: 532480 B/epoch
# met in: huggingface/accelerate#2234
import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)

accelerator = Accelerator(cpu=True)
model = nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
model, optimizer = accelerator.prepare(model, optimizer)


def resample():
    x = torch.randn(2048, 64)  # leak
    y = x.sum(1, keepdim=True)  # leak
    return TensorDataset(x, y)


data = resample()
loader = accelerator.prepare(DataLoader(data, batch_size=32))
for epoch in range(80):
    if FIXED:
        data.tensors = resample().tensors
    else:
        loader = accelerator.prepare(DataLoader(resample(), batch_size=32))  # leak
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
print(f"loss {loss.item():.6f}")
