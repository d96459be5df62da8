"""What threads see of a dispatch mode of their own: each prints what it computed."""

import concurrent.futures
import sys
import threading

import torch

torch.set_num_threads(1)


def work(n):
    total = torch.zeros(3)
    for i in range(n):
        total = torch.add(total, i)
    return total.tolist()


def threaded(name, f, *args):
    out = []
    thread = threading.Thread(target=lambda: out.append(f(*args)))
    thread.start()
    thread.join()
    print(name, *out)


def inference(n):
    with torch.inference_mode():
        return work(n), torch.is_inference_mode_enabled()


def profiled(n):
    seen = []
    sys.setprofile(lambda *a: seen.append(None))
    out = work(n)
    sys.setprofile(None)
    return out, len(seen) > n


def unwatched(n):
    """A thread that goes on for long is left by the mode."""
    work(n)
    return torch._C._len_torch_dispatch_stack(), sys.getprofile()


threaded("short", work, 100)
threaded("inference", inference, 1000)
threaded("profiled", profiled, 1000)
threaded("long", unwatched, 60_000)
threaded("after it", work, 100)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print("pool", sum(x[0] for x in pool.map(work, [500] * 8)))


class Fails(threading.Thread):
    def run(self):
        torch.ones(3)
        raise ValueError("as it would alone")


threading.excepthook = lambda args: print(args.exc_type.__name__, args.exc_value, args.exc_traceback.tb_next.tb_frame.f_code.co_name)
thread = Fails()
thread.start()
thread.join()
print(threading.active_count(), torch._C._len_torch_dispatch_stack() < 2)
