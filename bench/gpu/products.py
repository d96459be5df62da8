"""How many GFLOP/s PyTorch reaches on the GPU in full precision, waiting for each, as BenchmarkMatMul and BenchmarkConv2d of engine/gpu
do: products.py NAME …, of MatMul/512 and the like, and Conv2d."""

import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def work(name):
    if name == "Conv2d":
        x, filters = torch.ones(32, 64, 56, 56, device="cuda"), torch.ones(64, 64, 3, 3, device="cuda")
        return 2 * 32 * 56 * 56 * 64 * 64 * 9, lambda: torch.nn.functional.conv2d(x, filters, padding=1)
    n = int(name.split("/")[1])
    x, y = torch.ones(n, n, device="cuda"), torch.ones(n, n, device="cuda")
    return 2 * n**3, lambda: x @ y


for name in sys.argv[1:]:
    flops, run = work(name)
    run()
    torch.cuda.synchronize()
    done, begun = 0, time.perf_counter()
    while (took := time.perf_counter() - begun) < 0.5:
        run()
        torch.cuda.synchronize()
        done += 1
    print("%s %.0f" % (name, done * flops / took / 1e9))
