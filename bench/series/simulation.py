"""A training on a model of PyTorch's caching allocator, which writes snapshots as torch.cuda.memory._dump_snapshot does."""

import gzip
import json
import os
import pickle
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "tools"))
from gen_torch_snapshots import CPP_ALLOC, CPP_BWD, CPP_PY, MiB, SITE, Allocator, Frames  # noqa: E402, F401

KiB = 1024


class Sim:
    def __init__(s, out, seed=0, history=10**9, times=True, device=0, annotate=True, step_us=25000, layers=8, width=256, batch=32, base=0x7F0000000000):
        s.out, s.rng, s.F = out, random.Random(seed), Frames()
        s.M = Allocator(base)
        s.history, s.times, s.device, s.annotate, s.step_us = history, times, device, annotate, step_us
        s.t = 1_700_000_000_000_000
        s.trace, s.ann = [], []
        s.layers, s.width, s.batch = layers, width, batch
        s.n = 0

    def stack(s, *user, cpp=CPP_ALLOC, outer=("<module>", "train.py", 60)):
        out = s.F.cpp(*cpp)
        for u in user + ((outer,) if outer else ()):
            out += s.F.cpp(*CPP_PY) + [s.F.get(*u)]
        return out + s.F.cpp("Py_RunMain", "__libc_start_main", "_start")

    def bwd(s, name):
        return s.F.cpp(*(CPP_ALLOC + (name + "::apply",) + CPP_BWD))

    def ev(s, action, addr, size, frames):
        s.t += s.rng.randint(1, 40)
        e = {"action": action, "addr": addr, "size": size, "stream": 0}
        if s.times:
            e["time_us"] = s.t
        if s.annotate:
            e["compile_context"] = "N/A"
            e["user_metadata"] = ""
        if frames:
            e["frames"] = frames
        s.trace.append(e)

    def alloc(s, size, frames):
        frames = list(frames)
        a, seg = s.M.alloc(size, frames)
        if seg:
            s.ev("segment_alloc", seg[0], seg[1], frames)
        s.ev("alloc", a, size, frames)
        return (a, size, frames)

    def free(s, h):
        s.ev("free_requested", *h)
        s.ev("free_completed", *h)
        s.M.release(h[0])

    def at(s, where, size, name="forward", outer=("train", "train.py", 41)):
        f, l = where.split(":")
        return s.alloc(size, s.stack((name, f, int(l)), outer))

    def build(s, line=31):
        s.params = [
            s.alloc(s.width * s.width * 4, s.stack(("__init__", SITE + "/nn/modules/linear.py", 99), ("__init__", "model.py", line + i % 4), ("main", "train.py", 20)))
            for i in range(s.layers)
        ]
        return s.params

    def mark(s, name):
        if s.annotate:
            for st in ("START", "END"):
                s.ann.append({"stage": st, "name": name, "device": s.device, "time_us": s.t})
                s.t += 3

    def step(s, batch=None, mid=None):
        """One training step; mid is called at the height of the forward pass."""
        s.n += 1
        b = batch or s.batch
        loop = ("train", "train.py", 41)
        acts = [s.alloc(b * s.width * 4, s.stack(("collate", "data.py", 57), loop))]
        for i in range(s.layers):
            acts.append(s.alloc(b * s.width * 4, s.stack(("linear", SITE + "/nn/functional.py", 1200 + i % 3), ("forward", "model.py", 156 + i % 5), loop)))
        if mid:
            mid()
        grads = [s.alloc(s.width * s.width * 4, s.bwd("AddmmBackward0")) for i in range(s.layers)]
        for h in reversed(acts):
            s.free(h)
        if s.n == 1:
            for i in range(s.layers):
                for k in (150, 154):
                    s.alloc(s.width * s.width * 4, s.stack(("_init_group", SITE + "/optim/adamw.py", k), ("step", SITE + "/optim/adamw.py", 210), loop))
        s.mark("Optimizer.step#AdamW.step")
        for h in grads:
            s.free(h)
        s.t += s.step_us

    def state(s, segs=None):
        return {
            "segments": segs or s.M.segments(s.device),
            "device_traces": [[] for _ in range(s.device)] + [s.trace[-s.history :] if s.history else []],
            "external_annotations": list(s.ann),
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False},
        }

    def dump(s, name=None, edit=None, gz=False, js=False, proto=4):
        d = s.state()
        if not s.annotate:
            d.pop("external_annotations")
        if edit:
            d = edit(d) or d
        os.makedirs(s.out, exist_ok=True)
        p = os.path.join(s.out, name or "snapshot_%d.pickle" % s.n)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        data = json.dumps(d).encode() if js else pickle.dumps(d, proto)
        (gzip.open if gz else open)(p, "wb").write(data)

    def run(s, steps, marks, each, **kw):
        """marks: step numbers of dumps; each(n) after every step."""
        marks = set(marks)
        if 0 in marks:
            s.dump(**kw)
        for n in range(1, steps + 1):
            each(n)
            if n in marks:
                s.dump(**kw)


def even(steps, k):
    return [round(i * steps / k) for i in range(k + 1)]


def simple(out, steps, marks, leak=None, each=None, dump={}, **kw):
    s = Sim(out, **kw)
    s.build()

    def one(n):
        s.step()
        if leak:
            leak(s, n)

    s.run(steps, marks, each or one, **dump)
    return s
