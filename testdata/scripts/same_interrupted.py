"""The agent stops while operators are under way that have seen its mode, in code that a collection runs."""

import gc
import os
import signal

import torch

torch.set_num_threads(1)
x = [torch.ones(3) + i for i in range(50)]
storage = x[0].untyped_storage()


def work(rounds):
    total = 0.0
    for _ in range(rounds):
        total += torch.ones(3).new(storage).shape[0]
        total += torch.split(torch.stack(x), 1)[7].sum().item()
    return total


try:
    import memdiag
except ImportError:
    print(work(300))
else:
    agent = memdiag._running
    agent.tick = lambda forced: torch._C._len_torch_dispatch_stack() == 1 and agent.stop(None)
    gc.callbacks.append(lambda phase, info: os.kill(os.getpid(), signal.SIGUSR1))
    gc.set_threshold(3, 1, 1)
    print(work(300))
    gc.callbacks.clear()
print(torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.Python))
