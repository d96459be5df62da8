"""A custom autograd Function keeps its output on the context, so that node and output hold each other; the collector frees both."""
# kind: training
# expect: clean
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x * torch.sigmoid(x)
        ctx.x, ctx.out = x.detach(), out
        return out

    @staticmethod
    def backward(ctx, grad):
        gate = torch.sigmoid(ctx.x)
        return grad * (ctx.out + gate * (1 - ctx.out))


model = nn.Linear(128, 128)
head = nn.Linear(128, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=1e-2)
for step in range(6000):
    x = torch.randn(32, 128)
    loss = head(Swish.apply(model(x))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
