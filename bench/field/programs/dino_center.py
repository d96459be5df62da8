"""Self-distillation moves a centre by the teacher's output without no_grad(), so it carries the graph of all steps; --fixed detaches it."""
# kind: vision
# holder: center
# cause: graph-retained
# rate: ~9000 B/step
import sys

import torch
from torch import nn

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)


class Centered(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("center", torch.zeros(1, width))

    def forward(self, student, teacher):
        targets = torch.softmax((teacher - self.center).detach() / 0.04, dim=-1)
        loss = -(targets * torch.log_softmax(student / 0.1, dim=-1)).sum(-1).mean()
        self.update(teacher)
        return loss

    def update(self, teacher):
        mean = teacher.mean(dim=0, keepdim=True)  # leak
        if FIXED:
            mean = mean.detach()
        self.center = self.center * 0.9 + mean * 0.1  # leak


teacher = nn.Linear(64, 128)
student = nn.Linear(64, 128)
objective = Centered(128)
optimizer = torch.optim.SGD(student.parameters(), lr=1e-2)
for step in range(6000):
    x = torch.randn(16, 64)
    loss = objective(student(x), teacher(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
