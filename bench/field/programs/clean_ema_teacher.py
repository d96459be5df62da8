"""A teacher follows the student by a moving average, and its soft labels go through a buffer of fixed size."""
# kind: vision
# expect: clean
import copy

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
student = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
centers = torch.zeros(200, 10)
for step in range(5000):
    x = torch.randn(16, 3, 8, 8)
    soft = teacher(x).softmax(1)
    centers[step % 200] = soft.mean(0)
    loss = nn.functional.cross_entropy(student(x + 0.1 * torch.randn_like(x)), soft - centers.mean(0) + 0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters()):
            old.lerp_(new, 0.01)
print(f"loss {loss.item():.6f}")
