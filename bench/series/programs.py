"""Series by what the program does: leaks, models, folds, noise."""

import random

from simulation import SITE, KiB, MiB, Sim, even, simple
from truth import series


@series(True, "train.py:41", rate=512)
def t01_losses(o):
    "loss kept each step, 13 dumps, full trace"
    simple(o, 240, even(240, 12), lambda s, n: s.alloc(4, s.stack(("train", "train.py", 41))))


@series(True, "hooks.py:9", rate=32 * KiB)
def t02_notrace13(o):
    "32 KiB a step, 13 dumps, no trace"
    simple(o, 600, even(600, 12), lambda s, n: s.at("hooks.py:9", 32 * KiB), history=0, annotate=False)


@series(True, "hooks.py:9", rate=32 * KiB, ok=[1, 4])
def t03_notrace4(o):
    "the same, 4 dumps, no trace"
    simple(o, 600, [0, 200, 400, 600], lambda s, n: s.at("hooks.py:9", 32 * KiB), history=0, annotate=False)


@series(True, "hooks.py:9", rate=32 * KiB, ok=[1, 4])
def t04_notrace3(o):
    "the same, 3 dumps"
    simple(o, 600, [200, 400, 600], lambda s, n: s.at("hooks.py:9", 32 * KiB), history=0, annotate=False)


@series(True, "hooks.py:9", rate=32 * KiB, ok=[1, 4])
def t05_trace2(o):
    "the same with trace, 2 dumps"
    simple(o, 300, [150, 300], lambda s, n: s.at("hooks.py:9", 32 * KiB))


@series(None, "hooks.py:9", ok=[4])
def t06_notrace2(o):
    "the same without trace, 2 dumps"
    simple(o, 300, [150, 300], lambda s, n: s.at("hooks.py:9", 32 * KiB), history=0, annotate=False)


@series(False)
def t11_warmup(o):
    "buffers made in the first fifth"
    simple(o, 500, even(500, 10), lambda s, n: n <= 100 and s.at("buffers.py:12", 256 * KiB))


@series(False)
def t11n_warmup_notrace(o):
    "the same, no trace"
    simple(o, 500, even(500, 10), lambda s, n: n <= 100 and s.at("buffers.py:12", 256 * KiB), history=0, annotate=False)


@series(True, "log.py:5", rate=128 * KiB)
def t12_late(o):
    "leak starts half-way"
    simple(o, 600, even(600, 12), lambda s, n: n > 300 and s.at("log.py:5", 128 * KiB))


@series(True, "log.py:5", rate=128 * KiB)
def t12n_late_notrace(o):
    "the same, no trace"
    simple(o, 600, even(600, 12), lambda s, n: n > 300 and s.at("log.py:5", 128 * KiB), history=0, annotate=False)


@series(False, ok=[0, 4])
def t13_stops(o):
    "grows up to 60 %, then no more"
    simple(o, 600, even(600, 12), lambda s, n: n < 360 and s.at("log.py:5", 128 * KiB))


@series(True, "evaluate.py:30", rate=8 * MiB / 50)
def t14_epoch(o):
    "8 MiB each epoch of 50 steps, dumps each 77"
    simple(o, 77 * 12, [77 * i for i in range(13)], lambda s, n: n % 50 == 0 and s.at("evaluate.py:30", 8 * MiB))


@series(True, "evaluate.py:30", rate=8 * MiB / 50)
def t14n_epoch(o):
    "the same, no trace"
    simple(o, 77 * 12, [77 * i for i in range(13)], lambda s, n: n % 50 == 0 and s.at("evaluate.py:30", 8 * MiB), history=0, annotate=False)


def midrun(o, steps, every, leak=None, trace=True, var=True, **kw):
    s = Sim(o, history=10**9 if trace else 0, annotate=trace, **kw)
    s.build()
    for n in range(1, steps + 1):
        s.step(s.rng.randint(8, 64) if var else None, mid=(lambda: s.dump("snapshot_%d.pickle" % n)) if n % every == 0 else None)
        if leak:
            leak(s, n)


@series(False)
def t18_varbatch(o):
    "batches of variable length, dumped in the forward pass"
    midrun(o, 600, 50, trace=False)


@series(True, "hooks.py:9", rate=16 * KiB)
def t19_varbatch_leak(o):
    "the same with a leak of 16 KiB a step"
    midrun(o, 600, 50, lambda s, n: s.at("hooks.py:9", 16 * KiB), trace=False)


@series(True, "hooks.py:9", rate=36 * KiB)
def t19b_varleak(o):
    "the kept tensor's size varies with the batch"
    midrun(o, 600, 50, lambda s, n: s.at("hooks.py:9", s.rng.randint(8, 64) * KiB), trace=False)


@series(False)
def t20_double(o):
    "two prefetch buffers that alternate"
    q = []

    def leak(s, n):
        q.append(s.at("prefetch.py:19", s.rng.randint(1, 3) * MiB))
        while len(q) > s.rng.randint(1, 3):
            s.free(q.pop(0))

    simple(o, 400, even(400, 8), leak, history=0, annotate=False)


@series(False)
def t21_fragment(o):
    "reserved memory grows, live memory does not"
    s = Sim(o, history=0, annotate=False, layers=3)
    s.build()
    q = []
    for n in range(1, 401):
        s.step()
        size = (n // 40 + 1) * 3 * MiB
        h = s.at("model.py:200", size)
        s.free(h)
        if n % 40 == 0:
            k = s.at("model.py:201", 600 * KiB)
            q.append(k)
            if len(q) > 1:
                s.free(q.pop(0))
            s.dump()


def noisy(o, steps, marks, leak, sites=10000, **kw):
    s = Sim(o, history=0, annotate=False, layers=2, **kw)
    s.build()
    live = {}
    st = [s.stack(("op%d" % (i % 97), "layers.py", 10 + i // 10), ("forward", "net%d.py" % (i % 10), 30 + i % 50)) for i in range(sites)]
    for i in range(sites):
        live[i] = [s.alloc(2048, st[i]) for _ in range(s.rng.randint(0, 5))]
    for n in range(1, steps + 1):
        s.trace.clear()
        s.step()
        for _ in range(400):
            i = s.rng.randrange(sites)
            if live[i] and s.rng.random() < 0.5:
                s.free(live[i].pop())
            elif len(live[i]) < 5:
                live[i].append(s.alloc(2048, st[i]))
        if leak:
            leak(s, n)
        if n in marks:
            s.dump()


@series(True, "tiny.py:3", rate=51.2)
def t22_tiny_noise(o):
    "512 B each 10 steps beside 10,000 sites that vary, no trace"
    noisy(o, 390, set(range(30, 391, 30)), lambda s, n: n % 10 == 0 and s.at("tiny.py:3", 512))


@series(False)
def t23_noise(o):
    "10,000 sites that vary, no trace"
    noisy(o, 390, set(range(30, 391, 30)), None)


@series(False)
def t23b_noise4(o):
    "the same, 4 dumps"
    noisy(o, 120, {30, 60, 90, 120}, None, seed=5)


@series(True, "a.py:5", "b.py:9", findings=2)
def t24_two(o):
    "two leaks: 64 KiB a step, and 1 MiB each 10 steps"
    simple(o, 400, even(400, 10), lambda s, n: (s.at("a.py:5", 64 * KiB), n % 10 == 0 and s.at("b.py:9", 1 * MiB, outer=("callback", "cb.py", 7))))


@series(True, "slow.py:3", rate=4096)
def t25_slow(o):
    "4 KiB a step beside 200 MiB of fluctuation, no trace"
    q = []

    def leak(s, n):
        s.at("slow.py:3", 4096)
        while len(q) > s.rng.randint(2, 8):
            s.free(q.pop(s.rng.randrange(len(q))))
        for _ in range(s.rng.randint(0, 3)):
            q.append(s.at("sampler.py:77", s.rng.randint(1, 40) * MiB))

    simple(o, 600, even(600, 12), leak, history=0, annotate=False)


def folds(o, keep, trace, n_folds=6, per=100, marks=25):
    s = Sim(o, history=10**9 if trace else 0, annotate=trace)
    n = 0
    for f in range(n_folds):
        p = s.build()
        s.n = n
        extra = [s.alloc(s.width * s.width * 4, s.stack(("_init_group", SITE + "/optim/adamw.py", k), ("train", "train.py", 41))) for k in (150, 154) for _ in p]
        for _ in range(per):
            n += 1
            s.n = n + 10
            s.step()
            s.n = n
            if n % marks == 0:
                s.dump()
        if not keep:
            for h in p + extra:
                s.free(h)


@series(False)
def t26_folds(o):
    "a model per fold, the old one freed"
    folds(o, False, True)


@series(False)
def t26n_folds(o):
    "the same, no trace"
    folds(o, False, False)


@series(True, "model.py:31", "model.py:32", "model.py:33", "model.py:34", ok=[1, 4], findings=1)
def t27_folds_kept(o):
    "a model per fold, all kept, 6 folds"
    folds(o, True, True)


@series(True, "model.py:31", "model.py:32", "model.py:33", "model.py:34", ok=[1], findings=1)
def t27b_folds_kept10(o):
    "12 folds, all kept, no trace"
    folds(o, True, False, 12, 50, 25)


@series(False)
def t28_pending(o):
    "record_stream: blocks pending free at each dump"

    def pend(d):
        r = random.Random(len(d["device_traces"][0]))
        for s in d["segments"]:
            for b in s["blocks"]:
                if b["state"] == "inactive" and r.random() < 0.3 and b["size"] < 2 * MiB:
                    b["state"] = "active_pending_free"
                    b["requested_size"] = b["size"]
                    s["active_size"] += b["size"]

    simple(o, 400, even(400, 8), dump=dict(edit=pend))


@series(True, "train.py:41", findings=1)
def t29_graph(o):
    "total_loss += loss: five small tensors of the graph each step"

    def leak(s, n):
        s.alloc(4, s.stack(("train", "train.py", 41)))
        for i in range(4):
            s.alloc(128, s.stack(("cross_entropy", SITE + "/nn/functional.py", 3050 + i), ("loss", "losses.py", 12), ("train", "train.py", 41)))

    simple(o, 300, even(300, 6), leak)


@series(True, "validate.py:19", rate=8 * 512 * KiB / 100)
def t35_eval(o):
    "8 predictions kept at each evaluation (100 steps), 7 dumps, no trace"
    simple(o, 600, even(600, 6), lambda s, n: n % 100 == 0 and [s.at("validate.py:19", 512 * KiB) for _ in range(8)], history=0, annotate=False)


@series(False)
def t36_accum(o):
    "gradients gathered over 4 steps, dumps at odd moments"
    s = Sim(o)
    s.build()
    g = []
    marks = {37, 90, 141, 190, 243, 299, 342, 400}
    for n in range(1, 401):
        s.step()
        g += [s.alloc(s.width * s.width * 4, s.bwd("AccumulateGrad"))]
        if n % 4 == 0:
            while g:
                s.free(g.pop())
        if n in marks:
            s.dump()


@series(False, ok=[0, 4])
def t42_curriculum(o):
    "longer sequences up to half of the run"
    s = Sim(o, history=0, annotate=False)
    s.build()
    for n in range(1, 601):
        s.step(min(16 + n // 10, 46), mid=(lambda: s.dump("snapshot_%d.pickle" % n)) if n % 50 == 0 else None)


@series(False)
def t43_ema(o):
    "an EMA copy at 40 % of the run"
    simple(o, 500, even(500, 10), lambda s, n: n == 200 and [s.at("ema.py:10", 256 * KiB) for _ in range(8)])


@series(False)
def t43n_ema(o):
    "the same, no trace"
    simple(o, 500, even(500, 10), lambda s, n: n == 200 and [s.at("ema.py:10", 256 * KiB) for _ in range(8)], history=0, annotate=False)


@series(False, ok=[0, 4])
def t44_lastjump(o):
    "a copy of the weights just before the last dump"
    simple(o, 500, even(500, 10), lambda s, n: n == 495 and [s.at("save.py:10", 256 * KiB) for _ in range(8)])


@series(False, ok=[0, 4])
def t45_dataset(o):
    "a data set of 200 batches moves to the GPU in epoch 1, then stays"
    simple(o, 500, even(500, 10), lambda s, n: n <= 200 and s.at("data.py:33", 512 * KiB))


@series(False, ok=[0, 4])
def t46_graphs(o):
    "CUDA graphs in private pools: 10 shapes, met at random"
    s = Sim(o, history=0, annotate=False)
    s.build()
    pools = {}
    base = 0x7D0000000000
    for n in range(1, 601):
        s.step()
        k = int(s.rng.random() ** 3 * 10)
        if k not in pools:
            pools[k] = (n, base + k * 64 * MiB)
        if n % 50 == 0:

            def add(d):
                for k, (at, a) in pools.items():
                    d["segments"].append(
                        {
                            "device": 0,
                            "address": a,
                            "total_size": 20 * MiB,
                            "allocated_size": (k + 1) * MiB,
                            "active_size": (k + 1) * MiB,
                            "requested_size": (k + 1) * MiB,
                            "stream": 0,
                            "segment_type": "large",
                            "segment_pool_id": (0, k + 1),
                            "is_expandable": False,
                            "frames": [],
                            "blocks": [
                                {
                                    "address": a,
                                    "size": (k + 1) * MiB,
                                    "requested_size": (k + 1) * MiB,
                                    "state": "active_allocated",
                                    "frames": s.stack(("capture", "graphs.py", 21)),
                                },
                                {"address": a + (k + 1) * MiB, "size": 20 * MiB - (k + 1) * MiB, "requested_size": 0, "state": "inactive", "frames": []},
                            ],
                        }
                    )
                d["segments"].sort(key=lambda x: x["address"])

            s.dump(edit=add)


@series(True, "collect.py:20", "collect.py:21", "collect.py:22", findings=1)
def t48_threelines(o):
    "one call keeps three tensors of three lines"
    simple(
        o,
        300,
        even(300, 6),
        lambda s, n: [s.alloc(8 * KiB, s.stack(("keep", "collect.py", l), ("on_batch_end", "collect.py", 40), ("train", "train.py", 41))) for l in (20, 21, 22)],
    )


@series(True, "hooks.py:9", rate=16 * KiB * 0.1)
def t54_coin(o):
    "16 KiB at one step in ten, at random"
    simple(o, 900, even(900, 12), lambda s, n: s.rng.random() < 0.1 and s.at("hooks.py:9", 16 * KiB))


@series(True, "hooks.py:9", rate=16 * KiB * 0.1)
def t54n_coin(o):
    "the same, no trace"
    simple(o, 900, even(900, 12), lambda s, n: s.rng.random() < 0.1 and s.at("hooks.py:9", 16 * KiB), history=0, annotate=False)


@series(True, "hooks.py:9", ok=[1, 4], rate=64 * KiB)
def t55_bursts(o):
    "64 blocks each 64 steps, with 13 dumps each 50 steps, no trace"
    simple(o, 650, even(650, 13), lambda s, n: n % 64 == 0 and [s.at("hooks.py:9", 64 * KiB) for _ in range(64)], history=0, annotate=False)


@series(True, "hooks.py:9", rate=32 * KiB)
def t58_6marks(o):
    "32 KiB a step, 6 dumps, no trace"
    simple(o, 600, even(600, 5), lambda s, n: s.at("hooks.py:9", 32 * KiB), history=0, annotate=False)


@series(True, "hooks.py:9", rate=32 * KiB, ok=[1, 4])
def t59_trace3(o):
    "32 KiB a step, 3 dumps, ring of the last 20 steps"
    simple(o, 600, [200, 400, 600], lambda s, n: s.at("hooks.py:9", 32 * KiB), history=900)


@series(True, "hooks.py:9", ok=[1])
def t60_accel(o):
    "hooks that add hooks: n blocks in step n"
    simple(o, 120, even(120, 8), lambda s, n: [s.at("hooks.py:9", 2 * KiB) for _ in range(n // 4)], history=0, annotate=False)


@series(True, "hooks.py:9", ok=[1])
def t62_survivors(o):
    "1 MiB each 10 steps kept, same stack also makes temporaries of the same size"
    q = []

    def leak(s, n):
        q.append(s.at("hooks.py:9", MiB))
        if n % 10:
            s.free(q.pop()) if s.rng.random() < 0.8 else None
        while len(q) > 3 and n % 10 == 5:
            s.free(q.pop())
        if n % 10 == 0:
            q.clear()

    simple(o, 600, even(600, 12), leak)
