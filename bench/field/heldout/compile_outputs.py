"""The logits of a compiled model are kept for each batch of every evaluation; --fixed keeps their arg max of the last."""
# kind: compile
# holder: collected
# cause: outputs-kept container-grows
# rate: 81920 B/evaluation
import sys
import warnings

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 40))
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
validation = torch.randn(512, 64)
collected = []


def evaluate():
    model.eval()
    with torch.no_grad():
        for x in validation.split(64):
            logits = compiled(x)  # leak
            collected.append(logits.argmax(1) if FIXED else logits)  # leak
    if FIXED:
        del collected[:-8]
    model.train()


for step in range(3000):
    x = torch.randn(64, 64)
    loss = nn.functional.cross_entropy(compiled(x), x[:, :40].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        evaluate()
print(f"loss {loss.item():.5f}")
