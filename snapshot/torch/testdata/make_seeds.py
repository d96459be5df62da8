#!/usr/bin/env python3
"""Write the small snapshots in this folder: every era, dialect and wrapping, all made up.

    python3 make_seeds.py        # rewrites the files beside this script; needs nothing but Python
"""
import base64, collections, gzip, io, json, os, pickle, struct, sys, types, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
T0 = 1_750_000_000_000_000


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


MALLOC = frame("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc", "??", 0)
UNWIND = frame("torch::unwind::unwind()", "??", 0)
EVAL = frame("_PyEval_EvalFrameDefault", "", 0)
START = frame("_start", "??", 0)
LINEAR = frame("forward", "/site-packages/torch/nn/modules/linear.py", 125)
TRAIN = frame("train_start", "train.py", 40)
MAIN = frame("<module>", "<string>", 1)
LOST = frame("init_gpu_context", "fake_tensor.py", 2**64 - 1)

FORWARD = [UNWIND, MALLOC, EVAL, LINEAR, TRAIN, EVAL, MAIN, START]
LOADER = [UNWIND, MALLOC, EVAL, TRAIN, LOST, MAIN, START]
BACKWARD = [UNWIND, MALLOC, frame("AddmmBackward0::apply", "??", 0), frame("clone", "", 0), START]
NOISE = [UNWIND, EVAL, START]
RECURSIVE = [LINEAR, LINEAR, LINEAR, TRAIN]


def block(size, requested, state, frames, **more):
    return dict(size=size, requested_size=requested, state=state, frames=frames, **more)


def segment(address, blocks, device=0, kind="small", pool=(0, 0), expandable=False, stream=0, frames=()):
    at, out = address, []
    for b in blocks:
        out.append({"address": at, **b})
        at += b["size"]
    return {"device": device, "address": address, "total_size": at - address,
            "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
            "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
            "requested_size": sum(b["requested_size"] for b in blocks if b["state"] != "inactive"),
            "stream": stream, "segment_type": kind, "segment_pool_id": pool, "is_expandable": expandable,
            "frames": list(frames), "blocks": out}


def event(n, action, addr, size, frames=None, **more):
    e = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": T0 + n * 1000, "compile_context": "N/A", "user_metadata": ""}
    if action == "oom":
        e = {"action": "oom", "device_free": addr, "size": size, "stream": 0, "time_us": T0 + n * 1000}
    if frames is not None:
        e["frames"] = frames
    return {**e, **more}


SETTINGS = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False,
            "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}


def annotation(n, stage, name):
    return {"stage": stage, "name": name, "device": 0, "time_us": T0 + n * 1000}


def full():
    """Two devices, both kinds of pool, pending frees in both spellings, oom, steps, a lost line."""
    a, b, c, d = 0x7F0000000000, 0x7F0000C00000, 0x7F0002000000, 0x7F0003000000
    return {
        "segments": [
            segment(a, [block(512, 4, "active_allocated", LOADER), block(1024, 1000, "active_allocated", FORWARD),
                        block(512, 77, "inactive", []), block(2048, 2000, "active_pending_free", FORWARD),
                        block((2 << 20) - 4096, 0, "inactive", [])], frames=FORWARD),
            segment(b, [block(20 << 20, 20000000, "active_allocated", BACKWARD)], kind="large", expandable=True, stream=123323568),
            segment(c, [block(2 << 20, 2 << 20, "active_awaiting_free", []), block(512, 512, "active_allocated", [])], pool=(0, 1), kind="large"),
            segment(d, [block(512, 512, "active_allocated", NOISE), block(512, 300, "active_allocated", RECURSIVE)], device=1, kind="large"),
        ],
        "device_traces": [
            [event(1, "segment_alloc", a, 2 << 20, FORWARD), event(2, "alloc", a, 999, FORWARD), event(3, "free_requested", a, 999, FORWARD),
             event(4, "free_completed", a, 999, FORWARD), event(5, "alloc", a, 4, LOADER), event(6, "snapshot", 0, 0),
             event(7, "free_completed", 0x1000, 64), event(8, "alloc", a + 512, 1000, FORWARD), event(9, "alloc", a + 2048, 2000, FORWARD),
             event(15, "oom", 3 << 20, 1 << 40), event(21, "alloc", b, 20000000, BACKWARD), event(22, "free_requested", a + 2048, 2000, FORWARD)],
            [event(12, "alloc", d, 512, NOISE)],
        ],
        "allocator_settings": SETTINGS,
        "external_annotations": [annotation(6, "START", "Optimizer.step#AdamW.step"), annotation(7, "END", "Optimizer.step#AdamW.step"),
                                 annotation(8, "START", "pad_mm_benchmark"), annotation(8, "END", "pad_mm_benchmark"),
                                 annotation(19, "START", "Optimizer.step#AdamW.step"), annotation(20, "END", "Optimizer.step#AdamW.step")],
    }


def history(size, requested, frames):
    return [{"addr": 0x7F0000000000, "real_size": requested, "frames": frames}]


def without(d, *keys):
    return {k: v for k, v in d.items() if k not in keys}


def era_1_12():
    return [{"device": 0, "address": 4096, "total_size": 2048, "allocated_size": 512, "active_size": 1536, "stream": 0, "segment_type": "small",
             "blocks": [{"size": 512, "state": "active_allocated"}, {"size": 1024, "state": "active_pending_free"}, {"size": 512, "state": "inactive"}]}]


def era_1_13():
    segs = era_1_12()
    segs[0]["blocks"][0]["history"] = history(512, 400, FORWARD)
    segs[0]["blocks"][2]["history"] = history(512, 300, LOADER)
    return segs


def era_2_0():
    segs = era_1_13()
    for b, n in zip(segs[0]["blocks"], (400, 1000, 300)):
        b["requested_size"] = n
    segs[0]["requested_size"] = 1400
    return {"segments": segs, "device_traces": [[{"action": "free_completed", "addr": 4096, "size": 77, "stream": 0}]]}


def era_2_1():
    d = without(full(), "allocator_settings", "external_annotations")
    d["device_traces"] = [[without(e, "time_us", "compile_context", "user_metadata") for e in t] for t in d["device_traces"]] + [[], []]
    return d


def era_2_2():
    d = without(full(), "allocator_settings", "external_annotations")
    d["device_traces"] = [[without(e, "compile_context", "user_metadata") for e in t] for t in d["device_traces"]]
    return d


def era_2026():
    d = full()
    d["device_traces"] = [[{**e, "pool_id": (0, 0)} for e in t] for t in d["device_traces"]]
    d["device_traces"][0].insert(3, {"action": "annotate", "name": "backward", "stage": "START", "time_us": T0 + 3100})
    d["device_traces"][0].insert(4, {"action": "of the future", "addr": 5, "time_us": T0 + 3200})
    d["allocator_settings"] = {**SETTINGS, "trace_alloc_overflowed": True, "trace_alloc_max_entries": 100}
    for s in d["segments"]:
        s["of_the_future"] = {"blocks": 3, "frames": {"a": [1.5, None, b"bytes", (1, 2, 3), {1, 2}]}}
    return d


def host():
    """Pinned memory: its lists as PyTorch's sources of 2026 let one expect them; no file was seen."""
    d, a, b = era_2026(), 0x7E0000000000, 0x7E0000200000
    pinned = [segment(a, [block(1 << 20, 1 << 20, "active_allocated", LOADER)], kind="large"),
              {"address": b, "total_size": 4096, "allocated_size": 4096, "active_size": 4096, "stream": 0, "segment_pool_id": (0, 0), "frames": FORWARD},
              {"address": 1, "of_the_future": []}, "what is this"]
    del pinned[0]["device"]
    events = [event(1, "segment_alloc", a, 1 << 20), event(2, "alloc", a, 1 << 20, LOADER), event(3, "alloc", b, 4096, FORWARD), event(4, "free_completed", 77, 1)]
    return {**d, "host_segments": pinned, "host_traces": events}


def host_by_device():
    d = host()
    return {"host_traces": [d["host_traces"], [], 3], "host_segments": d["host_segments"], **without(d, "host_segments", "host_traces")}


def traces_first():
    d = full()
    return {"external_annotations": d["external_annotations"], "device_traces": d["device_traces"], "segments": d["segments"][::-1]}


def kineto():
    return {"segments": [{"device": 0, "address": 1 << 20, "total_size": 4096, "stream": 0,
                          "blocks": [{"size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": [frame("aten::empty", "none", 0)]},
                                     {"size": 3072, "state": "inactive"}]}],
            "device_traces": [[{"action": "alloc", "addr": 1 << 20, "size": 1000, "stream": 0, "frames": [frame("aten::empty", "none", 0)], "category": "ACTIVATION"}]]}


def flat():
    """One record a segment, without blocks, as JSON tools write."""
    return [{"device": 0, "address": 1 << 30, "total_size": 2 << 20, "allocated_size": 1 << 20, "active_size": (1 << 20) + 512, "stream": 0,
             "segment_type": "small", "frames": [{"filename": "train.py", "line": 7}, {"filename": "model.py", "line": 3}]},
            {"device": 0, "address": 2 << 30, "total_size": 20 << 20, "allocated_size": 0, "active_size": 0, "stream": 0, "segment_type": "large", "frames": []}]


def agent():
    return {"memdiag": {"step": 40, "rank": 3, "version": "0.1"},
            "segments": [{"device": -1, "address": 4096, "total_size": 1536, "segment_type": "cpu", "stream": 0,
                          "blocks": [{"address": 4096, "size": 1024, "requested_size": 1024, "state": "active_allocated", "frames": [TRAIN, MAIN], "step": 12},
                                     {"address": 5120, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": [TRAIN, MAIN]}]}]}


def unordered():
    d = full()
    for s in d["segments"]:
        s["blocks"].reverse()
    d["segments"].reverse()
    return d


def big_lists():
    """Longer than a batch of the pickler: 1001 frames, blocks and events."""
    frames = [frame("f%d" % (i % 7), "deep.py", i) for i in range(1001)]
    blocks = [block(512, 512, "active_allocated" if i % 2 else "inactive", frames if i % 3 else []) for i in range(1001)]
    s = segment(1 << 40, blocks, kind="large")
    return {"segments": [s], "device_traces": [[event(i, "alloc", (1 << 40) + 512 * i, 512, frames) for i in range(1001)]], "external_annotations": []}


def shared():
    """Dicts that are items of two places, as programs leave them that copy lists about."""
    e = event(1, "alloc", 1 << 40, 512, LOADER)
    b = block(512, 500, "active_allocated", LOADER)
    note = annotation(3, "END", "Optimizer.step#Adam.step")
    s = segment(1 << 40, [b, b, block(512, 9, "inactive", [])])
    s["blocks"] = [b, b, s["blocks"][2]]
    empty = []
    return {"segments": [s, {**segment(2 << 40, []), "blocks": empty}, {**segment(3 << 40, []), "blocks": empty}],
            "device_traces": [[e, e, {**e, "addr": (1 << 40) + 512, "size": 500}], [e], empty, empty], "external_annotations": [note, note]}


def foreign():
    """A snapshot that its owner wrapped with what was at hand."""
    def module(name, **members):
        m = types.ModuleType(name)
        for k, v in members.items():
            setattr(m, k, v)
            v.__module__, v.__qualname__ = name, k
        sys.modules[name] = m
    version = type("TorchVersion", (str,), {})
    size = type("Size", (tuple,), {})
    config = type("Config", (), {})
    module("torch", Size=size)
    module("torch.torch_version", TorchVersion=version)
    module("train", Config=config)
    c = config()
    c.lr, c.layers = 0.1, [1, 2, {"x": c}]
    return {"version": version("2.6.0"), "shape": size((1, 2)), "config": c, "when": collections.OrderedDict(step=3),
            "snapshot": collections.OrderedDict(full())}


class CppPickler:
    """torch::jit::Pickler as PyTorch uses it for snapshots: protocol 2, no batches, 8-byte LONG1."""

    def __init__(self):
        self.out, self.next, self.strings, self.shared = bytearray(b"\x80\x02"), 0, {}, {}

    def put(self):
        self.out += b"q" + bytes([self.next]) if self.next < 256 else b"r" + struct.pack("<I", self.next)
        self.next += 1
        return self.next - 1

    def get(self, i):
        self.out += b"h" + bytes([i]) if i < 256 else b"j" + struct.pack("<I", i)

    def value(self, v):
        if isinstance(v, str):
            if v in self.strings:
                return self.get(self.strings[v])
            raw = v.encode()
            self.out += b"X" + struct.pack("<I", len(raw)) + raw
            self.strings[v] = self.put()
        elif isinstance(v, bool):
            self.out += b"\x88" if v else b"\x89"
        elif isinstance(v, int):
            if 0 <= v < 256:
                self.out += b"K" + bytes([v])
            elif 0 <= v < 65536:
                self.out += b"M" + struct.pack("<H", v)
            elif -2**31 <= v < 2**31:
                self.out += b"J" + struct.pack("<i", v)
            else:
                self.out += b"\x8a\x08" + struct.pack("<q", v if v < 2**63 else v - 2**64)
        elif isinstance(v, float):
            self.out += b"G" + struct.pack(">d", v)
        elif isinstance(v, tuple):
            for x in v:
                self.value(x)
            self.out += b"\x86"
        elif id(v) in self.shared:
            self.get(self.shared[id(v)])
        elif isinstance(v, list):
            self.out += b"]("
            for x in v:
                self.value(x)
            self.out += b"e"
            if v and "name" in v[0]:
                self.shared[id(v)] = self.put()
        else:
            self.out += b"}("
            for k, x in v.items():
                self.value(k)
                self.value(x)
            self.out += b"u"
            if "filename" in v:
                self.shared[id(v)] = self.put()

    def dump(self, v):
        self.value(v)
        return bytes(self.out) + b"."


def archive(data):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as z:
        for name, content in (("archive/data.pkl", data), ("archive/byteorder", b"little"), ("archive/version", b"3\n")):
            z.writestr(zipfile.ZipInfo(name), content)
    return raw.getvalue()


def page(data):
    padded = data + b"\0" * (3 - len(data) % 3)
    return ('<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type="module">\nimport {add_local_files} from "./MemoryViz.js"\n'
            'const local_files = [{"name": "snapshot.pickle", "base64": "%s"}]\nadd_local_files(local_files, \'Active Memory Timeline\')\n'
            '</script>\n</body>\n' % base64.b64encode(padded).decode()).encode()


def old_save(tree):
    """What torch.save(tree, f, _use_new_zipfile_serialization=False) writes."""
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    return b"".join(pickle.dumps(part, protocol=2) for part in (0x1950A86A20F9469CFC6C, 1001, machine, tree, []))


def main():
    files = {}
    for p in range(6):
        files["full_protocol%d.pickle" % p] = pickle.dumps(full(), protocol=p)
    files["full_cpp.pickle"] = CppPickler().dump(full())
    files["full.json"] = json.dumps(full()).encode()
    files["full_indented.json"] = json.dumps(full(), indent=2).encode()
    files["full.zip"] = archive(pickle.dumps(full(), protocol=2))
    files["full.old"] = old_save(full())
    files["full.pickle.gz"] = gzip.compress(pickle.dumps(full(), protocol=4), mtime=0)
    files["full.html"] = page(pickle.dumps(full(), protocol=4))
    for make in (era_1_12, era_1_13, era_2_0, era_2_1, era_2_2, era_2026, host, host_by_device, traces_first, kineto, agent, unordered, big_lists):
        files[make.__name__ + ".pickle"] = pickle.dumps(make(), protocol=4)
    for p in (0, 2):
        files["era_2026_protocol%d.pickle" % p] = pickle.dumps(era_2026(), protocol=p)
        files["foreign_protocol%d.pickle" % p] = pickle.dumps(foreign(), protocol=p)
    for p in (0, 2, 4):
        files["shared_protocol%d.pickle" % p] = pickle.dumps(shared(), protocol=p)
    files["foreign.pickle"] = pickle.dumps(foreign(), protocol=4)
    files["big_lists_cpp.pickle"] = CppPickler().dump(big_lists())
    files["flat.json"] = json.dumps(flat()).encode()
    files["empty.pickle"] = pickle.dumps({"segments": [], "device_traces": [[], []]}, protocol=4)
    for name, data in files.items():
        with open(os.path.join(HERE, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
