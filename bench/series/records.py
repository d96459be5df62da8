"""Series by how a program was recorded: rings, devices, ranks, formats of several versions, no frames, no times, no steps."""

import os

from simulation import CPP_ALLOC, KiB, MiB, Sim, even, simple
from truth import series

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


@series(True, rate=16 * KiB)
def t47_cpponly(o):
    "C++ frames only"
    simple(o, 300, even(300, 6), lambda s, n: s.alloc(16 * KiB, s.F.cpp(*CPP_ALLOC) + [s.F.get("mylib::Cache::put(at::Tensor)", "??", 0), s.F.get("main", "??", 0)]))


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


@series(True, "evaluate.py:30", rate=8 * MiB)  # the names count epochs
def t14e_epoch6(o):
    "8 MiB each epoch of 100 steps, a dump after each of 6 epochs, no trace, names epoch_1…"
    simple(o, 600, [100 * i for i in range(1, 7)], lambda s, n: n % 100 == 0 and s.at("evaluate.py:30", 8 * MiB), history=0, annotate=False)
    [os.rename(f"{o}/snapshot_{100*i}.pickle", f"{o}/epoch_{i}.pickle") for i in range(1, 7)]
