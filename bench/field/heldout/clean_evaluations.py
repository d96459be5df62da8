"""Every 200 steps an evaluation gathers all outputs, computes a median and lets go of them."""
# kind: vision
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
validation = torch.randn(4096, 64)
medians = []


@torch.no_grad()
def evaluate():
    model.eval()
    outputs = [model(x) for x in validation.split(256)]
    errors = torch.cat(outputs) - validation
    medians.append(errors.square().mean(1).median().item())
    model.train()


for step in range(5000):
    x = torch.randn(64, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 199:
        evaluate()
print(f"median {medians[-1]:.6f}")
