"""The running loss of a whole training is a sum of tensors, not of numbers; --fixed sums loss.item()."""
# kind: vision
# holder: running_loss
# cause: graph-retained values-kept-as-tensors
# rate: ~13000 B/step
# met in: google/brax#152
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)

model = nn.Sequential(
    nn.Conv2d(3, 8, 3),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 12 * 12, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running_loss = 0.0
for step in range(4000):
    x = torch.randn(8, 3, 16, 16)
    y = torch.randint(0, 10, (8,))
    loss = nn.functional.cross_entropy(model(x), y)  # leak
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running_loss += loss.item() if FIXED else loss  # leak
print(f"mean loss {float(running_loss) / (step + 1):.4f}")
