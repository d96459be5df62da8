"""A bank of features is concatenated with those of each batch and never cut; --fixed keeps the newest 4,096."""
# kind: vision
# holder: bank
# cause: cache-regrown activations-kept
# rate: 8192 B/step
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.register_buffer("bank", torch.zeros(0, 64))

    def forward(self, x):
        z = nn.functional.normalize(self.net(x), dim=1)
        self.bank = torch.cat([self.bank, z.detach()])  # leak
        if FIXED:
            self.bank = self.bank[-4096:].clone()
        negatives = self.bank[-4096:]
        return torch.logsumexp(z @ negatives.T, 1).mean()


model = Contrast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1500):
    loss = model(torch.randn(32, 64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.5f}")
