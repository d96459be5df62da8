"""Times training steps of the twins in PyTorch, for bench/train.sh and bench/gpu.py: MODEL THREADS STEPS; with "gpu" for THREADS on a GPU."""
import statistics
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d=128, heads=4, hidden=512):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x):
        n, t, d = x.shape
        y = self.n1(x)
        q, k, v = (f(y).view(n, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.relu(self.up(self.n2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(1000, 128), nn.Embedding(64, 128)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 1000)

    def forward(self, x):
        x = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


def build(name):
    if name == "mlp":
        m = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return m, torch.randn(64, 784), torch.randint(10, (64,))
    if name == "conv":
        m = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 10))
        return m, torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    return Transformer(), torch.randint(1000, (8, 64)), torch.randint(1000, (512,))


def main():
    name, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(1)
    wait = lambda: None
    if threads == "gpu":  # in full precision, as our engine computes
        torch.set_default_device("cuda")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        wait = torch.cuda.synchronize
    else:
        torch.set_num_threads(int(threads))
    m, x, y = build(name)
    x, y = x.cpu(), y.cpu()  # each step hands its batch over
    place = next(m.parameters()).device
    opt = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
    times, busy = [], []
    for _ in range(steps):
        t, b = time.perf_counter(), time.process_time()
        loss = F.cross_entropy(m(x.to(place)), y.to(place))
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        wait()
        times.append(time.perf_counter() - t)
        busy.append(time.process_time() - b)
    # Median and mean, of time and of processor time.
    print(*(int(1e6 * f(l[steps // 5:])) for l in (times, busy) for f in (statistics.median, statistics.mean)))


main()
