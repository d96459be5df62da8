"""Gradient descent written by hand, without torch.optim; what is predicted at each step is kept."""

import torch

torch.manual_seed(0)
w, b = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
x = torch.randn(64, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 3
history = []
for step in range(30000):
    predicted = x @ w + b
    (predicted - y).square().mean().backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.001 * p.grad
            p.grad = None
    history.append(predicted.detach().clone())  # leak
print(f"{w.tolist()} {b.item():.3f}")
