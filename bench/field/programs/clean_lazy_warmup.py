"""Lazy layers and a cache of masks are made in the first steps, and nothing after them."""
# kind: vision
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LazyLinear(256), nn.ReLU(), nn.LazyLinear(64), nn.ReLU())
        self.head = nn.LazyLinear(10)
        self.masks = {}

    def forward(self, x):
        width = x.shape[1]
        if len(x) not in self.masks:
            self.masks[len(x)] = torch.linspace(0, 1, len(x) * width).reshape(len(x), width)
        return self.head(self.body(x + self.masks[len(x)]))


model = Net()
model(torch.zeros(1, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6000):
    x = torch.randn(16 + step % 20, 64)
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
