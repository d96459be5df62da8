"""Functions and blocks under memdiag.watch, in a process that memdiag records."""

import asyncio
import json
import os

import torch

import memdiag

kept, model = [], None


@memdiag.watch("leaks")
def leaks(i):
    batch = torch.ones(128) * i
    kept.append(batch)
    return batch * 2


def made_once():
    global model
    with memdiag.watch("once"):
        if model is None:
            model = torch.nn.Linear(4, 4)
        return model(torch.ones(4)).sum()


@memdiag.watch("recursive")
def recursive(n):
    return torch.ones(8) + recursive(n - 1) if n else torch.zeros(8)


later = []


@memdiag.watch("coroutine")
async def coroutine(i):
    batch = torch.ones(32) * i
    await asyncio.sleep(0)
    later.append(batch)
    return batch.sum()


@memdiag.watch("generator")
def generator(i):
    for k in range(3):
        yield torch.ones(8) * i * k


async def gathered(i):
    await asyncio.gather(coroutine(i), coroutine(i))


def main():
    state = torch.zeros(4)
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for i in range(100):
        result = leaks(i)
        loss = made_once()
        with memdiag.watch("replaces"):
            state = state + 1
        recursive(5)
        # The graph of the last result has views of weights, which are no new storages.
        with memdiag.watch("forward"):
            error = net(torch.randn(8, 64)).square().mean()
        error.backward()
        optimizer.step()
        optimizer.zero_grad()
        try:
            with memdiag.watch("raises"):
                raise KeyError
        except KeyError:
            pass
        asyncio.run(gathered(i))
        for a, b in zip(generator(i), generator(i), strict=True):
            assert a.equal(b)
        del a, b
        memdiag.mark(step=i + 1, epoch=i // 50)
        if i == 50:
            path = memdiag.snapshot()
            assert os.path.basename(path) in ("snapshot_51.json", "again_51_1.json"), path  # the step may have one already
            with open(path, encoding="utf-8") as f:
                assert json.load(f)["epoch"] == 1
    calls = {name: memdiag.watch(name).calls for name in ("leaks", "once", "recursive", "replaces", "forward", "raises")}
    assert set(calls.values()) == {100}, calls
    calls = {name: memdiag.watch(name).calls for name in ("coroutine", "generator")}
    assert set(calls.values()) == {200}, calls
    w = memdiag.watch("leaks")
    print(w.tensors, w.bytes, w.held_by)


main()
