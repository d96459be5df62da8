"""What a dispatch mode could break, each printed as the sum of what it computed."""

import inspect
import pickle
import threading
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


assert pickle.loads(pickle.dumps(nn.Module.eval)) is nn.Module.eval


def show(name, *tensors):
    print(name, *(t.detach().double().sum().item() for t in tensors))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Named:
    def __init_subclass__(cls, name="", **kwargs):
        super().__init_subclass__(**kwargs)
        cls.name = name


class Tagged(torch.Tensor, Named, name="tagged"):
    pass


class Scaled(Tagged):
    def __new__(cls, values, scale=1.0):
        made = super().__new__(cls, [scale * v for v in values])
        made.scale = scale
        return made


def train(model, x, y, steps, optimizer=None):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


x, y = torch.randn(32, 8), torch.randn(32, 1)
mlp = train(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), x, y, 40)
show("trained", *mlp.parameters())

show("constructors", torch.Tensor(3, 2).zero_(), torch.Tensor([1.0, 2.0]), torch.tensor([3.0]), torch.FloatTensor([4.0]))
show("subclass", torch.randn(4).as_subclass(Tagged) * 2, Tagged([1.0, 2.0]), Tagged(torch.ones(3)), Scaled([1.0, 3.0], scale=2.0))
print(Tagged.name, type(Scaled([1.0]) + 1).__name__, pickle.loads(pickle.dumps(Tagged([5.0]))), inspect.signature(Scaled))
a = torch.randn(5, requires_grad=True)
Square.apply(a).sum().backward()
show("function", a.grad)
b = torch.randn(6, 8, requires_grad=True)
checkpoint(mlp, b, use_reentrant=False).sum().backward()
show("checkpoint", b.grad)
show("vmap", torch.func.vmap(torch.dot)(torch.randn(3, 4), torch.randn(3, 4)))
show("grad", torch.func.grad(lambda t: (t**3).sum())(torch.randn(4)))
show("jit", torch.jit.trace(mlp, x)(x))
show("script", torch.jit.script(nn.Linear(2, 2))(torch.ones(1, 2)))
show("sparse", torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).to_dense())
show("complex", torch.fft.fft(torch.randn(8)).abs())
show("attention", nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()(torch.randn(2, 5, 16)))
show("lstm", nn.LSTM(4, 6)(torch.randn(3, 2, 4))[0])
c = torch.empty(0)
c.resize_(4).fill_(2)
c.set_(torch.ones(3).untyped_storage())
show("resized", c)
with torch.inference_mode():
    show("inference", mlp(x))
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
    d = torch.randn(4, requires_grad=True)
    (d.exp() * d).sum().backward()
    show("hooks", d.grad)
with torch.autocast("cpu", torch.bfloat16):
    show("autocast", mlp(x))
passed = []


def pass_on(t):
    passed.append(weakref.ref(t))
    return t


try:
    pass_on(torch.ones(2, 2)) @ torch.ones(3)
except RuntimeError as e:
    kept = e
print("error", passed[0]() is None, kept, kept.__traceback__.tb_next)
lbfgs = nn.Linear(8, 1)
optimizer = torch.optim.LBFGS(lbfgs.parameters(), max_iter=5)


def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(lbfgs(x), y)
    loss.backward()
    return loss


for _ in range(3):
    optimizer.step(closure)
show("lbfgs", *lbfgs.parameters())

results = [None] * 2


def work(i):
    generator = torch.Generator().manual_seed(i)
    model = nn.Linear(8, 1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    results[i] = sum(p.sum().item() for p in train(model, x, y, 20).parameters())


threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for t in threads:
    t.start()
    t.join()
print("threads", results)
