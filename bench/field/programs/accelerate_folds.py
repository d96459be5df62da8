"""Cross-validation prepares a model and optimizer per fold with one Accelerator; --fixed calls free_memory() after each."""
# kind: callbacks
# holder: _models _optimizers
# cause: model-copies-kept container-grows cache-without-bound
# rate: 530448 B/fold
# met in: huggingface/accelerate#739
import sys

import torch
from accelerate import Accelerator
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
x = torch.randn(600, 64)
y = x.square().mean(1, keepdim=True)


def train_fold(fold):
    held_out = torch.arange(len(x)) % 60 == fold % 60
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))  # leak
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)  # leak
    for step in range(120):
        batch = torch.randint(0, len(x), (64,))
        loss = ((model(x[batch]) - y[batch]).square().mean(1) * ~held_out[batch]).mean()
        optimizer.zero_grad()
        accelerator.backward(loss)  # leak
        optimizer.step()  # leak
    with torch.no_grad():
        return (model(x[held_out]) - y[held_out]).square().mean().item()


scores = []
for fold in range(40):
    scores.append(train_fold(fold))
    if FIXED:
        accelerator.free_memory()
print(f"score {sum(scores) / len(scores):.6f}")
