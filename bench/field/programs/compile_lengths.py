"""torch.compile with dynamic=False compiles a program per sequence length; --fixed compiles one for all."""
# kind: compile
# holder: -
# cause: compiled-anew host-only
# rate: ~900000 B/length
# met in: pytorch/pytorch#124269
import sys
import warnings

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 10_000
torch._dynamo.config.accumulated_recompile_limit = 10_000


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.mix = nn.Linear(32, 32)
        self.head = nn.Linear(32, 5)

    def forward(self, ids):
        x = self.embedding(ids)
        x = x + torch.tanh(self.mix(x)).mean(1, keepdim=True)
        return self.head(x)


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
forward = torch.compile(model, backend="aot_eager", dynamic=True if FIXED else False)
total = 0.0
for length in range(8, 48):
    for repeat in range(10):
        ids = torch.randint(0, 100, (4, length))
        loss = nn.functional.cross_entropy(forward(ids).flatten(0, 1), ids.flatten() % 5)  # leak
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
print(f"total {total:.3f}")
