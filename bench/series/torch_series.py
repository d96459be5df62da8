"""Series of PyTorch snapshots with known truth, which stands above each and was written before memdiag was run on it."""

import os
import random

from simulation import CPP_ALLOC, SITE, KiB, MiB, Sim, even, simple

ALL = {}


def series(leak, *lines, rate=None, ok=None, findings=None):
    """Registers a series. leak is True, False, or None if nobody could tell; lines are those that leak, as file:line; rate is
    in bytes a step; ok are the exit codes of memdiag gate that are right; findings is how many there should be."""

    def f(fn):
        ALL[fn.__name__] = (
            fn,
            dict(
                leak=leak,
                lines=lines,
                rate=rate,
                ok=ok or ([1] if leak else [0] if leak is False else [4]),
                findings=findings or (max(1, len(lines)) if leak else 0),
                doc=fn.__doc__,
            ),
        )
        return fn

    return f


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


U = [900, 1000, 1750, 2600, 4000, 5200, 6100, 7700, 9100, 10000]


@series(True, "aux.py:88", rate=2 * MiB / 100)
def t07_uneven_ring(o):
    "2 MiB each 100 steps, uneven names step_900…step_10000, ring of 3000 events"
    simple(o, 10000, U, lambda s, n: n % 100 == 0 and s.at("aux.py:88", 2 * MiB), history=3000, dump=dict(name=None), layers=3)
    rename(o, "snapshot_", "step_")


@series(False)
def t08_uneven_ring_clean(o):
    "the same, clean"
    simple(o, 10000, U, history=3000, layers=3)
    rename(o, "snapshot_", "step_")


def rename(o, a, b):
    for f in os.listdir(o):
        os.rename(o + "/" + f, o + "/" + f.replace(a, b))


def expandable(d):
    out = []
    for s in d["segments"]:
        s["is_expandable"] = True
        out.append(s)
    # neighbouring segments become one mapped range
    return d


@series(True, "fpn.py:88", rate=64 * KiB)
def t09_expandable(o):
    "features kept, one expandable range that grows, no times"

    def merge(d):
        segs = sorted(d["segments"], key=lambda s: s["address"])
        new = {}
        for s in segs:
            p = s["segment_type"]
            if p not in new:
                new[p] = dict(
                    s,
                    is_expandable=True,
                    blocks=[],
                    total_size=0,
                    allocated_size=0,
                    active_size=0,
                    requested_size=0,
                    address=0x7F00_0000_0000 if p == "small" else 0x7F80_0000_0000,
                )
            m = new[p]
            for b in s["blocks"]:
                m["blocks"].append(dict(b, address=m["address"] + m["total_size"]))
                m["total_size"] += b["size"]
            for k in ("allocated_size", "active_size", "requested_size"):
                m[k] += s[k]
        d["segments"] = sorted(new.values(), key=lambda s: s["address"])
        d["device_traces"] = [[]]
        d["allocator_settings"]["expandable_segments"] = True

    simple(o, 300, even(300, 6), lambda s, n: s.at("fpn.py:88", 64 * KiB), dump=dict(edit=merge), annotate=False)


@series(True, "ema.py:17", rate=100 * KiB)
def t10_two_devices(o):
    "cuda:1 leaks, cuda:0 does not"
    a = Sim(o)
    b = Sim(o, device=1, base=0x7E0000000000, seed=3)
    a.build()
    b.build()
    for n in range(1, 301):
        a.step()
        b.step()
        b.at("ema.py:17", 100 * KiB)
        if n % 50 == 0:

            def both(d):
                e = b.state()
                d["segments"] = sorted(d["segments"] + e["segments"], key=lambda s: (s["device"], s["address"]))
                d["device_traces"] += e["device_traces"][1:]
                d["external_annotations"] += e["external_annotations"]

            a.dump(edit=both)


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


@series(True, "evaluate.py:30", rate=8 * MiB)  # the names count epochs
def t14e_epoch6(o):
    "8 MiB each epoch of 100 steps, a dump after each of 6 epochs, no trace, names epoch_1…"
    simple(o, 600, [100 * i for i in range(1, 7)], lambda s, n: n % 100 == 0 and s.at("evaluate.py:30", 8 * MiB), history=0, annotate=False)
    [os.rename(f"{o}/snapshot_{100*i}.pickle", f"{o}/epoch_{i}.pickle") for i in range(1, 7)]


@series(False, ok=[0, 4])
def t15_lru(o):
    "cache of 120 keys, drawn at random, fills"
    seen = {}

    def leak(s, n):
        k = s.rng.randrange(120)
        if k not in seen:
            seen[k] = s.at("cache.py:22", 96 * KiB)

    simple(o, 900, even(900, 12), leak)


@series(False, ok=[0, 4])
def t15n_lru(o):
    "the same, no trace"
    seen = {}

    def leak(s, n):
        k = s.rng.randrange(120)
        if k not in seen:
            seen[k] = s.at("cache.py:22", 96 * KiB)

    simple(o, 900, even(900, 12), leak, history=0, annotate=False)


@series(False)
def t16_ring(o):
    "replay buffer of 150, then replaced"
    q = []

    def leak(s, n):
        q.append(s.at("replay.py:14", 64 * KiB))
        if len(q) > 150:
            s.free(q.pop(0))

    simple(o, 600, even(600, 12), leak)


@series(False)
def t16n_ring(o):
    "the same, no trace"
    q = []

    def leak(s, n):
        q.append(s.at("replay.py:14", 64 * KiB))
        if len(q) > 150:
            s.free(q.pop(0))

    simple(o, 600, even(600, 12), leak, history=0, annotate=False)


def saw(period, size=128 * KiB):
    q = []

    def leak(s, n):
        q.append(s.at("metrics.py:8", size))
        if n % period == 0:
            while q:
                s.free(q.pop())

    return leak


@series(False)
def t17_saw70(o):
    "list emptied each 70 steps, dumps each 50"
    simple(o, 600, even(600, 12), saw(70))


@series(False)
def t17n_saw70(o):
    "the same, no trace"
    simple(o, 600, even(600, 12), saw(70), history=0, annotate=False)


@series(False, ok=[0, 4])
def t17m_saw51(o):
    "emptied each 51 steps, dumps each 50, no trace"
    simple(o, 500, even(500, 10), saw(51), history=0, annotate=False)


@series(False)
def t17l_saw250(o):
    "emptied each 250 steps, dumps each 50"
    simple(o, 600, even(600, 12), saw(250), history=0, annotate=False)


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


@series(True, "hooks.py:9", rate=32 * 256 * 4 * 0.97)
def t19b_varleak(o):
    "the kept tensor's size varies with the batch"
    midrun(o, 600, 50, lambda s, n: s.at("hooks.py:9", s.rng.randint(8, 64) * KiB), trace=False)
    ALL["t19b_varleak"][1]["rate"] = 36 * KiB


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


@series(True, ok=[1, 4])
def t30_noframes(o):
    "no frames at all"

    def strip(d):
        d["device_traces"] = [[]]
        for s in d["segments"]:
            s["frames"] = []
            for b in s["blocks"]:
                b["frames"] = []

    simple(o, 600, even(600, 12), lambda s, n: s.at("x.py:1", 48 * KiB), dump=dict(edit=strip), annotate=False)


@series(False)
def t30c_noframes(o):
    "no frames at all, clean"

    def strip(d):
        d["device_traces"] = [[]]
        for s in d["segments"]:
            s["frames"] = []
            for b in s["blocks"]:
                b["frames"] = []

    simple(o, 600, even(600, 12), dump=dict(edit=strip), annotate=False)


def legacy(d):
    out = []
    for s in d["segments"]:
        s = {k: s[k] for k in ("device", "address", "total_size", "allocated_size", "active_size", "stream", "segment_type")} | {
            "blocks": [
                {"size": b["size"], "state": b["state"]}
                | ({"history": [{"addr": b["address"], "real_size": b["requested_size"], "frames": b["frames"]}]} if b["state"] != "inactive" else {})
                for b in s["blocks"]
            ]
        }
        out.append(s)
    return out


@series(True, "fpn.py:88", rate=64 * KiB)
def t31_list(o):
    "bare list of 1.13, history frames"
    simple(o, 300, even(300, 8), lambda s, n: s.at("fpn.py:88", 64 * KiB), dump=dict(edit=legacy), annotate=False)


@series(True, "fpn.py:88", rate=64 * KiB)
def t32_json(o):
    "JSON with trace"
    simple(o, 120, even(120, 6), lambda s, n: s.at("fpn.py:88", 64 * KiB), dump=dict(js=True))
    rename(o, ".pickle", ".json")


@series(True, "fpn.py:88")
def t33_clock(o):
    "names by the clock, no steps, no annotations"
    s = Sim(o, annotate=False)
    s.build()
    k = 0
    for n in range(1, 601):
        s.step()
        s.at("fpn.py:88", 64 * KiB)
        if n % 60 == 0:
            k += 1
            s.dump("mem_2026-11-26_10-%02d-%02d.pickle" % (k // 2, 30 * (k % 2)))


@series(False)
def t33c_clock(o):
    "the same, clean"
    s = Sim(o, annotate=False)
    s.build()
    k = 0
    for n in range(1, 601):
        s.step()
        if n % 60 == 0:
            k += 1
            s.dump("mem_2026-11-26_10-%02d-%02d.pickle" % (k // 2, 30 * (k % 2)))


@series(True, "stage.py:12", rate=256 * KiB)
def t34_ranks(o):
    "two ranks, rank 1 leaks"
    for r in (0, 1):
        s = Sim(o, seed=r)
        s.build()
        for n in range(1, 241):
            s.step()
            if r:
                s.at("stage.py:12", 256 * KiB)
            if n % 40 == 0:
                s.dump("rank%d_step%d.pickle" % (r, n))


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


def cat(s, n, box, per=64 * KiB, limit=None):
    new = s.at("decode.py:44", (box[1] if box else 0) + per)
    if box:
        s.free(box[0])
        size = box[1] + per
    else:
        size = per
    box[:] = [new, size]


@series(True, "decode.py:44", rate=16 * KiB)
def t37_cat(o):
    box = []
    simple(o, 500, even(500, 10), lambda s, n: cat(s, n, box, 16 * KiB))


@series(True, "decode.py:44", rate=16 * KiB)
def t37n_cat(o):
    box = []
    simple(o, 500, even(500, 10), lambda s, n: cat(s, n, box, 16 * KiB), history=0, annotate=False)


@series(False)
def t38_kv(o):
    "KV cache, emptied at the end of each conversation of random length"
    box = []
    left = [0]

    def leak(s, n):
        if left[0] == 0:
            left[0] = s.rng.randint(20, 120)
            if box:
                s.free(box[0])
                box.clear()
        left[0] -= 1
        cat(s, n, box, 16 * KiB)

    simple(o, 1000, even(1000, 12), leak, history=0, annotate=False)


@series(True, "aux.py:88", rate=2 * MiB / 50)
def t39_ring30(o):
    "2 MiB each 50 steps, the ring has the last 30 steps"
    simple(o, 1200, even(1200, 12), lambda s, n: n % 50 == 0 and s.at("aux.py:88", 2 * MiB), history=30 * 45)


@series(True, "aux.py:88", rate=64 * KiB)
def t40_notimes(o):
    "traces without times (2.1)"
    simple(o, 400, even(400, 4), lambda s, n: s.at("aux.py:88", 64 * KiB), times=False, annotate=False)


@series(False)
def t41_notimes_clean(o):
    "the same, clean"
    simple(o, 400, even(400, 4), times=False, annotate=False)


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


@series(True, rate=16 * KiB)
def t47_cpponly(o):
    "C++ frames only"
    simple(o, 300, even(300, 6), lambda s, n: s.alloc(16 * KiB, s.F.cpp(*CPP_ALLOC) + [s.F.get("mylib::Cache::put(at::Tensor)", "??", 0), s.F.get("main", "??", 0)]))


@series(True, "collect.py:20", "collect.py:21", "collect.py:22", findings=1)
def t48_threelines(o):
    "one call keeps three tensors of three lines"
    simple(
        o,
        300,
        even(300, 6),
        lambda s, n: [s.alloc(8 * KiB, s.stack(("keep", "collect.py", l), ("on_batch_end", "collect.py", 40), ("train", "train.py", 41))) for l in (20, 21, 22)],
    )


@series(True, "fpn.py:88", rate=64 * KiB)
def t50_proto2gz(o):
    "protocol 2, gzip"
    simple(o, 200, even(200, 5), lambda s, n: s.at("fpn.py:88", 64 * KiB), dump=dict(proto=2, gz=True))
    rename(o, ".pickle", ".pickle.gz")


@series(True, "fpn.py:88", rate=512 * KiB)
def t52_oom(o):
    "the last file is oom_snapshot.pickle"
    s = simple(o, 300, [50, 100, 150, 200, 250, 300], lambda s, n: s.at("fpn.py:88", 512 * KiB))
    s.step()
    s.at("fpn.py:88", 512 * KiB)
    s.trace.append({"action": "oom", "device_free": 1 << 20, "size": 64 * MiB, "stream": 0, "time_us": s.t, "frames": s.stack(("train", "train.py", 41))})
    s.dump("oom_snapshot.pickle")


@series(True, "hooks.py:9", rate=32 * KiB, ok=[1, 4])
def t53_resumed(o):
    "killed and resumed half-way, leaks in both"
    for part, base in ((0, 0x7F0000000000), (1, 0x7C0000000000)):
        s = Sim(o, base=base, seed=part, history=0, annotate=False)
        s.build()
        s.n = part * 300
        for n in range(part * 300 + 1, part * 300 + 301):
            s.step() if s.n else s.step()
            s.n = n
            s.at("hooks.py:9", 32 * KiB)
            if n % 40 == 0:
                s.dump()


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


@series(False)
def t56_epochlist(o):
    "losses of an epoch in a list, emptied at its end of 100 steps; dumps at 50, 150, …"
    simple(o, 650, [50 + 100 * i for i in range(7)], saw(100, 4), history=0, annotate=False)


@series(False, ok=[0, 4])
def t57_growinglists(o):
    "list of an epoch, emptied each 200; dumps at uneven 40, 190, 230, 395, 420, 590, 640, 790"
    simple(o, 800, [40, 190, 230, 395, 420, 590, 640, 790], saw(200), history=0, annotate=False)


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


@series(False, ok=[0, 4])
def t61_log(o):
    "unique tokens: number of keys grows like a logarithm, then ends"
    seen = {}

    def leak(s, n):
        k = int(s.rng.paretovariate(0.7))
        if k < 60 and k not in seen:
            seen[k] = s.at("vocab.py:9", 40 * KiB)

    simple(o, 900, even(900, 12), leak, history=0, annotate=False)


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
