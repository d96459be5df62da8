"""Trees of processes. In each one process leaks, several do, or none: python bench/tree/trees.py NAME [SECONDS].

The line that leaks ends in the comment "leak: " and the names of the trees that it leaks in.
"""

import concurrent.futures
import functools
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing import shared_memory

SIZE = 200_000
PAUSE = 0.005

# Of each tree that leaks: the process that is to be named, what holds the memory there ("" where no object does), and the exit code of
# the gate where no line of Python's is known to allocate it: 4, or 1 where the agent is in none of the processes; else 0.
LEAKS = {}


def leaks(role, holder="", without_line=0):
    def tree(f):
        LEAKS[f.__name__] = role, holder, without_line
        return f

    return tree


def decoded(n=SIZE):
    return os.urandom(256) * (n // 256)  # leak: all


def until(seconds, pause=PAUSE):
    """Numbers, one each pause, for so long."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield n
        n += 1
        time.sleep(pause)


# Workers.


def keep(seconds):
    kept = []
    for _ in until(seconds):
        kept.append(decoded())  # leak: spawned grandchild


def drop(seconds):
    for _ in until(seconds):
        decoded()


def parent_of_keep(seconds):
    child = multiprocessing.Process(target=keep, args=(seconds,))
    child.start()
    child.join()


memory = []


def task_keeps(_):
    time.sleep(PAUSE)
    memory.append(decoded())  # leak: pool executor
    return 1


def task(_):
    time.sleep(PAUSE)
    return len(decoded())


class Decoder:
    """A dataset that decodes; it keeps what it decoded where that is asked for, in one worker or all."""

    def __init__(self, keeps=False, alone=False, most=0, count=10_000_000, pause=0.002):
        self.keeps, self.alone, self.most, self.count, self.pause = keeps, alone, most, count, pause
        self.cache = {}

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        import torch.utils.data

        time.sleep(self.pause)
        image = decoded()  # leak: loader_fork loader_spawn loader_forkserver one_of_four
        info = torch.utils.data.get_worker_info()
        if self.keeps and (not self.alone or info.id == 1):
            self.cache[i] = image  # leak: loader_fork loader_spawn loader_forkserver one_of_four
        elif self.most:
            self.cache[i % self.most] = image
        return i


def load(seconds, dataset, workers=2, method="fork", persistent=True, epochs=1):
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers, persistent_workers=persistent, multiprocessing_context=method)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for batch in loader:
            optimizer.zero_grad()
            model(batch.float()[:, None].expand(-1, 16) / 1e7).sum().backward()
            optimizer.step()
            if time.monotonic() >= end:
                break


def processes(method, *jobs):
    context = multiprocessing.get_context(method)
    all = [context.Process(target=f, args=args) for f, *args in jobs]
    for p in all:
        p.start()
    for p in all:
        p.join()


# Trees that leak.


@leaks("keep 1", "keep.<locals>.kept")
def spawned(s):
    processes("spawn", (keep, s), (drop, s))


@leaks("loader worker", "cache")
def loader_fork(s):
    load(s, Decoder(keeps=True))


@leaks("loader worker", "cache")
def loader_spawn(s):
    load(s, Decoder(keeps=True), method="spawn")


@leaks("loader worker", "cache")
def loader_forkserver(s):
    load(s, Decoder(keeps=True), method="forkserver")


@leaks("loader worker 1", "cache")
def one_of_four(s):
    load(s, Decoder(keeps=True, alone=True), workers=4)


@leaks("pool worker", "__main__.memory")
def pool(s):
    with multiprocessing.Pool(2) as p:
        for _ in until(s, 0):
            p.map(task_keeps, range(20))


@leaks("executor worker", "__main__.memory")
def executor(s):
    with concurrent.futures.ProcessPoolExecutor(2) as p:
        for _ in until(s, 0):
            list(p.map(task_keeps, range(20)))


@leaks("perl", without_line=4)
def no_python(s):
    work = subprocess.Popen(["perl", "-e", 'for (1..%d) { push @a, "x" x 200000; select(undef, undef, undef, 0.01) }' % (s * 95)])
    processes("fork", (drop, s))
    work.wait()


def share(seconds):
    segments = []
    try:
        for _ in until(seconds, 0.02):
            segment = shared_memory.SharedMemory(create=True, size=SIZE)  # leak: shared
            segment.buf[:] = decoded()[: segment.size].ljust(segment.size, b"x")
            segments.append(segment)
    finally:
        for segment in segments:
            segment.close()
            segment.unlink()


@leaks("share 1", "segments")
def shared(s):
    processes("spawn", (share, s))


@leaks("keep 1:1", "keep.<locals>.kept")
def grandchild(s):
    processes("spawn", (parent_of_keep, s))


requests = []


def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            requests.append(decoded())  # leak: prefork
            connection.sendall(b"ok")


@leaks("of trees.py", "__main__.requests")
def prefork(s):
    """A server of three forks, which all keep what they answered."""
    listener = socket.create_server(("127.0.0.1", 0))
    pids = []
    for _ in range(3):
        pids.append(os.fork())
        if pids[-1] == 0:
            serve(listener)
    for _ in until(s):
        with socket.create_connection(listener.getsockname()) as connection:
            connection.sendall(b"x")
            connection.recv(10)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


@leaks("", "keep.<locals>.kept")
def daemon(s):
    """A child of a child, whose parent ends, in another folder and without streams."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            os.closerange(0, 3)
            keep(s)
        os._exit(0)
    os.wait()
    drop(s + 1)


@leaks("keep 1", "keep.<locals>.kept")
def chain(s):
    subprocess.run(["bash", "-c", "%s %s spawned %s; true" % (sys.executable, __file__, s)], check=True)


def train(seconds, model, keeps=False):
    import torch

    torch.set_num_threads(1)
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=1e-6), []
    for _ in until(seconds):
        out = model(torch.randn(32, 64))  # leak: hogwild
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        if keeps:
            kept.append(out.detach())  # leak: hogwild


def trainers(*jobs):
    """Processes that train one model, without ranks."""
    import torch

    model = torch.nn.Linear(64, 256)
    model.share_memory()
    processes("fork", *((train, seconds, model, keeps) for seconds, keeps in jobs))


@leaks("train 2", "train.<locals>.kept")
def hogwild(s):
    trainers((s, False), (s, True), (s, False))


@leaks("keep 1", without_line=4)
def own_signal(s):
    """The program takes the signal that the recorder needs; its child gives all back as it ends."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    processes("fork", (keep, s))


def in_background(command, seconds):
    """A shell starts a command and ends at once."""
    subprocess.run(["sh", "-c", command + " &"], check=True)
    drop(seconds + 1)


@leaks("trees.py", "keep.<locals>.kept")
def orphan(s):
    in_background("%s %s keep %s" % (sys.executable, __file__, s), s)


@leaks("perl", without_line=4)
def orphan_no_python(s):
    in_background("perl -e 'for (1..%d) { push @a, \"x\" x 200000; select(undef, undef, undef, 0.01) }'" % (s * 95), s)


def share_descriptors(seconds):
    """Files in memory without a name."""
    descriptors = []
    for _ in until(seconds, 0.02):
        fd = os.memfd_create("kept")  # leak: memory_files
        os.write(fd, decoded())
        descriptors.append(fd)


@leaks("share_descriptors 1")
def memory_files(s):
    processes("fork", (share_descriptors, s))


def share_files(seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for n in until(seconds, 0.02):
            with open(os.path.join(folder, str(n)), "wb") as f:
                f.write(decoded())


@leaks("share_files 1", without_line=4)
def named_files(s):
    processes("spawn", (share_files, s))


def share_tensors(seconds, strategy):
    import torch

    torch.multiprocessing.set_sharing_strategy(strategy)
    kept = []
    for _ in until(seconds, 0.02):
        tensor = torch.ones(SIZE // 4)  # leak: tensor_files tensor_descriptors
        kept.append(tensor.share_memory_())  # leak: tensor_files tensor_descriptors


@leaks("share_tensors 1", "share_tensors.<locals>.kept")
def tensor_files(s):
    processes("spawn", (share_tensors, s, "file_system"))


@leaks("share_tensors 1", "share_tensors.<locals>.kept")
def tensor_descriptors(s):
    processes("fork", (share_tensors, s, "file_descriptor"))


def wait_with(n, seconds):
    has = os.urandom(n)
    time.sleep(seconds)
    return has


@leaks("wait_with", without_line=4)
def more_and_more(s):
    """Children that stay, ever more of them."""
    for n in until(s, 0.4):
        multiprocessing.Process(target=wait_with, args=(4_000_000, s), daemon=True).start()


@leaks("fork of trees.py", without_line=4)
def larger_and_larger(s):
    """Each child lives shortly, and has more than the one before."""
    for n in until(s, 0):
        processes("fork", (wait_with, 500_000 * n, 0.15))


both_kept = []


@leaks("keep 1", "keep.<locals>.kept")
def both(s):
    """The process that was started leaks a little, and its child much."""
    child = multiprocessing.Process(target=keep, args=(s,))
    child.start()
    for _ in until(s, 0.02):
        both_kept.append(decoded(20_000))  # leak: both
    child.join()


# Trees that do not.

inherited = []


def touch(seconds):
    """Writes to what it has from its parent, little by little; each page is copied once."""
    for n in until(seconds):
        if n < len(inherited):
            inherited[n][::4096] = bytes(len(inherited[n][::4096]))


def copy_on_write(s):
    inherited.extend(bytearray(SIZE) for _ in range(int(s * 60)))
    processes("fork", (touch, s), (touch, s))


def restarted_workers(s):
    load(s, Decoder(count=800, most=100), persistent=False)


def prefetch(s):
    """A queue that holds up to 100 of what is decoded."""
    queue = multiprocessing.Queue(100)
    p = multiprocessing.Process(target=fill, args=(queue,), daemon=True)
    p.start()
    for _ in until(s, 0.02):
        queue.get()
    p.terminate()


def fill(queue):
    while True:
        queue.put(decoded())


def two_ranks(s):
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(random.randrange(20000, 60000)), __file__, "rank", str(s)], check=True)


def rank(s):
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(int(s * 100)):  # as many on each
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
        time.sleep(PAUSE)
    torch.distributed.barrier()  # who is done first closes what the other still reads
    torch.distributed.destroy_process_group()


def checkpoint(s):
    """A fork writes the state while the training goes on."""
    state = [bytearray(SIZE) for _ in range(200)]
    for n in until(s):
        state[n % 200][:] = bytes(SIZE)
        if n % 200 == 0:
            pid = os.fork()
            if pid == 0:
                with tempfile.TemporaryFile() as f:
                    for part in state:
                        f.write(part)
                        time.sleep(0.002)
                os._exit(0)
        if n % 200 == 150:
            os.waitpid(pid, 0)
    try:
        os.wait()
    except ChildProcessError:
        pass


def each_step(s):
    for _ in until(s):
        subprocess.run(["true"], check=True)


def files(seconds):
    with tempfile.TemporaryFile() as f:
        for _ in until(seconds):
            f.write(decoded())


def page_cache(s):
    processes("spawn", (files, s))


def replaced(s):
    with multiprocessing.Pool(2, maxtasksperchild=150) as p:
        for _ in until(s, 0):
            p.map(task_keeps, range(20), chunksize=1)


def uneven(seconds):
    """Buffers of any size, a thousand at a time, from the start: on a busy machine it would take all of the time to fill them.
    malloc keeps pages of them."""
    chance = random.Random(1)
    live = [bytearray(chance.randrange(100, 100_000)) for _ in range(1000)]
    for _ in until(seconds, 0.002):
        live[chance.randrange(1000)] = bytearray(chance.randrange(100, 100_000))


def kept_pages(s):
    processes("spawn", (uneven, s), (uneven, s))


def many_children(s):
    """200 a second, which end at once."""
    for _ in until(s, 0.1):
        for _ in range(20):
            if os.fork() == 0:
                os._exit(0)
        for _ in range(20):
            os.wait()


class Rows:
    def __len__(self):
        return 10_000_000

    def __getitem__(self, i):
        import torch

        time.sleep(0.02)
        return torch.full((50_000,), 1.0)


def hand_over(seconds, strategy):
    """Workers hand tensors over in shared memory."""
    import torch

    torch.set_num_threads(1)
    set_strategy = functools.partial(torch.multiprocessing.set_sharing_strategy, strategy)
    set_strategy()
    model, end = torch.nn.Linear(50_000, 1), time.monotonic() + seconds
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for batch in torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, worker_init_fn=lambda _: set_strategy()):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if time.monotonic() >= end:
            break


def by_file(s):
    hand_over(s, "file_system")


def by_descriptor(s):
    hand_over(s, "file_descriptor")


def hogwild_clean(s):
    trainers((s, False), (s, False), (s, False))


def executors(s):
    """Each epoch has a pool of its own, whose workers keep what they made until it ends."""
    for _ in until(s, 0):
        with concurrent.futures.ProcessPoolExecutor(2) as p:
            list(p.map(task_keeps, range(200)))


def reloaded(s):
    """A server that is started anew each three seconds, and keeps what it made until then."""
    for _ in until(s, 0):
        server = subprocess.Popen([sys.executable, __file__, "keep", "100"])
        time.sleep(3)
        server.terminate()
        server.wait()


def crowd(s):
    """401 children that live for a second, one after the other."""
    for n in range(401):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
        time.sleep(s / 401)
    for _ in range(401):
        os.wait()


def peaks(seconds):
    """Has much for a moment, as at an evaluation, ever more often; malloc keeps pages of it."""
    chance = random.Random(2)
    for n in until(seconds, 0.05):
        if n % 40 == 39:
            all = [bytearray(chance.randrange(100, 50_000)) for _ in range(2000)]
            kept = all[::97]
            del all


def after_peaks(s):
    processes("fork", (peaks, s))


CLEAN = [crowd, after_peaks, copy_on_write, restarted_workers, prefetch, two_ranks, checkpoint, each_step, page_cache, replaced, kept_pages, many_children, by_file, by_descriptor, hogwild_clean, executors, reloaded]

if __name__ == "__main__":
    globals()[sys.argv[1]](float(sys.argv[2]) if len(sys.argv) > 2 else 12)
