"""A scheduler's rates and the losses are kept as numbers, which is 64 bytes a step and nobody's leak."""
# kind: training
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=4000)
losses = []
rates = []
for step in range(4000):
    x = torch.randn(64, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rates.append(scheduler.get_last_lr()[0])
    losses.append(loss.item())
    if step < 3999:
        scheduler.step()
print(f"loss {sum(losses[-100:]) / 100:.6f} rate {max(rates):.4f}")
