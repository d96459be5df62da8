"""Writes golden.json: what PyTorch computes for the operations, layers and
optimizers of the engine, with gradients. Run it with Python 3.11 and torch:

    python engine/testdata/golden.py

golden_test.go holds the engine against the file and names the same cases. Inputs
are float32; PyTorch computes in float64, so that the file holds the truth and the
test's tolerances are the engine's own rounding. Gradients are those of the sum of
weight(i)·output[i] over all outputs.
"""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(20260802)
torch.set_num_threads(1)
F64 = torch.float64


def draw(*shape, low=-2.0, high=2.0, gap=1):
    """Floats of a range, whole thousandths, no two nearer than gap of those."""
    n = int(np.prod(shape))
    grid = torch.arange(round(low * 1000), round(high * 1000), gap)
    picked = grid[torch.randperm(len(grid))[:n]]
    return (picked.to(torch.float32) / 1000).reshape(shape)


def values(*numbers, shape=None):
    t = torch.tensor(numbers, dtype=torch.float32)
    return t if shape is None else t.reshape(shape)


def ints(*numbers, shape=None):
    t = torch.tensor(numbers, dtype=torch.int64)
    return t if shape is None else t.reshape(shape)


def weight(n):
    """0.5 to 1.25 in steps of 1/8, which float32 holds exactly."""
    return 0.5 + (torch.arange(n) % 7).to(F64) / 8


cases = []


def case(name, f, *inputs, gradients=True):
    """Adds a case: f maps the inputs, in float64, to an output or several."""
    args = [t.to(F64).requires_grad_(gradients) if t.is_floating_point() else t for t in inputs]
    out = f(*args)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    row = {"name": name, "in": list(inputs), "out": [t.detach() for t in outs]}
    if gradients:
        loss = sum((weight(t.numel()) * t.reshape(-1)).sum() for t in outs if t.requires_grad)
        leaves = [t for t in args if t.is_floating_point()]
        grads = torch.autograd.grad(loss, leaves, allow_unused=True)
        by_leaf = dict(zip(map(id, leaves), grads))
        row["grad"] = [by_leaf.get(id(t)) for t in args]
    cases.append(row)


# Operations.

X = draw(2, 3)
case("neg", torch.neg, X)
case("exp", torch.exp, X)
case("log", torch.log, draw(2, 3, low=0.1))
case("sqrt", torch.sqrt, draw(2, 3, low=0.1))
case("recip", torch.reciprocal, draw(2, 3, low=0.2))
case("abs, with a 0", torch.abs, values(-1.5, 0, 2))
case("relu, with a 0", torch.relu, values(-1.5, 0, 2))
case("tanh", torch.tanh, draw(2, 3, low=-4, high=4))
case("sigmoid", torch.sigmoid, draw(2, 3, low=-8, high=8))

ROW, COLUMN = draw(3), draw(2, 1)
case("add with a stretched row", torch.add, X, ROW)
case("sub with a stretched column", torch.sub, COLUMN, X)
case("mul with a stretched row", torch.mul, X, ROW)
case("div by a stretched row", torch.div, X, draw(3, low=0.3))
case("max, with equals", torch.maximum, values(1, 2, 3, -1), values(2, 2, -3, -1))
case("pow", torch.pow, draw(2, 3, low=0.2), draw(3))
case("less", lambda a, b: (a < b).to(F64), values(1, 2, 3), values(2, 2, 2), gradients=False)
case("equal", lambda a, b: (a == b).to(F64), values(1, 2, 3), values(2, 2, 2), gradients=False)
case("where", lambda c, a, b: torch.where(c.detach() != 0, a, b), values(1, 0, -2), X, COLUMN)

CUBE = draw(2, 3, 4)
case("sum of all", torch.sum, CUBE)
case("sum over the first and last axis", lambda a: a.sum((0, -1)), CUBE)
case("max over an axis, with equals", lambda a: a.amax(1), values(1, 5, 5, 2, 2, 2, 9, 0, shape=(2, 4)))
case("argmax", lambda a: a.argmax(1), CUBE, gradients=False)

case("matmul", torch.matmul, draw(3, 4), draw(4, 5))
case("matmul of a matrix and a batch", torch.matmul, draw(3, 4), draw(2, 4, 5))
case("matmul of stretched batches", torch.matmul, draw(2, 1, 3, 4), draw(3, 4, 2))
case("matmul of a transpose", lambda a, b: a.transpose(-1, -2) @ b, draw(2, 4, 3), draw(2, 4, 5))

case("copy", torch.clone, X)
case("detach", lambda a: a.detach() * a, X)
case("reshape of a permutation", lambda a: a.permute(2, 0, 1).reshape(8, 3), CUBE)
case("permute", lambda a: a.permute(2, 0, 1), CUBE)
case("slice", lambda a: a[:, 1:3], CUBE)
case("expand", lambda a: a.expand(4, 2, 3), COLUMN)
case("concat", lambda a, b: torch.cat([a, b, a], 1), X, draw(2, 2))
case("assign to a slice", lambda a, b: torch.cat([a[:, :1], b.expand(2, 2)], 1), X, values(7), gradients=False)
INDEX = ints(3, 0, 3, 1)
case("gather", lambda a, i: a[i], draw(4, 3), INDEX)
case("scatter-add", lambda a, i: torch.zeros(5, 3, dtype=F64).index_add(0, i, a), draw(4, 3), INDEX)

WINDOW = dict(stride=(2, 1), padding=(1, 1))
IMAGE = draw(2, 3, 5, 4)
case("conv2d", lambda x, f: F.conv2d(x, f, **WINDOW), IMAGE, draw(4, 3, 3, 2))
case("conv2d of single pixels", F.conv2d, IMAGE, draw(4, 3, 1, 1))
case("unfold", lambda x: F.unfold(x, (3, 2), **WINDOW), IMAGE)
case("fold", lambda c: F.fold(c, (5, 4), (3, 2), **WINDOW), draw(2, 18, 15))
case("log-softmax", lambda a: F.log_softmax(a, -1), draw(3, 5, low=-6, high=6))


# Uniform numbers: Philox4x32-10, written again here, and held against a known answer.


def philox(counter, key):
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def uniform(key, stream, n):
    low, high = lambda x: x & 0xFFFFFFFF, lambda x: x >> 32
    words = []
    for block in range((n + 3) // 4):
        words += philox([low(block), high(block), low(stream), high(stream)], [low(key), high(key)])
    return torch.tensor([w >> 8 for w in words[:n]], dtype=F64) / 2**24


DRAW = (0x123456789ABCDEF, 3 << 32 | 7)
case("rand", lambda: uniform(*DRAW, 10), gradients=False)
case("dropout", lambda a: a * (uniform(*DRAW, 24) >= 0.3).to(F64).reshape(a.shape) / 0.7, draw(4, 6))

# Composed functions.

case("scale", lambda a: a * 0.375, X)
case("shift", lambda a: a + 0.375, X)
case("mean over axes", lambda a: a.mean((0, 2)), CUBE)
case("sum to a shape", lambda a: a.sum_to_size(3, 1), CUBE)
case("softmax", lambda a: a.softmax(-1), draw(3, 5, low=-6, high=6))
case("moments", lambda a: (a.mean((0, 2), keepdim=True), a.var((0, 2), keepdim=True, unbiased=False)), CUBE)
case("layer norm", lambda a, g, b: F.layer_norm(a, (4,), g, b, 1e-3), CUBE, draw(4), draw(4))
case("batch norm by running moments",
     lambda x, m, v, g, b: F.batch_norm(x, m.detach(), v.detach(), g, b, eps=1e-3),
     IMAGE, draw(3), draw(3, low=0.5), draw(3), draw(3))
case("batch norm by the batch's moments",
     lambda x, g, b: (F.batch_norm(x, None, None, g, b, True, eps=1e-3),
                      x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=False)),
     IMAGE, draw(3), draw(3))
# Far apart, so that no small difference makes another the largest.
TALL = draw(2, 2, 4, 6, gap=40)
case("max pool of tiles", lambda x: F.max_pool2d(x, 2), TALL)
case("max pool of overlapping windows", lambda x: F.max_pool2d(x, 3, 1), TALL)
case("max pool with a rest", lambda x: F.max_pool2d(x, 2), draw(2, 2, 5, 4, gap=40))
case("upsample", lambda x: F.interpolate(x, scale_factor=2), TALL)

LOGITS, LABELS = draw(4, 5, low=-6, high=6), ints(3, 0, 4, 3)
case("cross entropy", F.cross_entropy, LOGITS, LABELS)
ROWS = values(1, 0.5, 0, 2)
case("cross entropy with weights",
     lambda a, i: (F.cross_entropy(a, i, reduction="none") * ROWS.to(F64)).sum() / ROWS.to(F64).sum(), LOGITS, LABELS)
for name, f, a, b in [
    ("mean squared error", F.mse_loss, X, draw(2, 3)),
    ("l1, with equals", F.l1_loss, values(1, 2, 3), values(1, 4, -1)),
]:
    for reduction in ["mean", "sum", "none"]:
        case(f"{name}, {reduction}", lambda a, b: f(a, b, reduction=reduction), a, b)

# Odd numbers: NaN and infinities. Their list is apart, since differences say nothing
# of their gradients. PyTorch's max pools hand the gradient to one NaN of a window, so
# only their results are compared.

ordinary, cases = cases, []
NAN, INF = float("nan"), float("inf")
case("relu of odd numbers", torch.relu, values(NAN, 1, -INF, INF, 0, -1))
case("max of odd numbers", torch.maximum, values(NAN, 1, 2, INF, -INF, 0), values(1, NAN, 2, 1, -INF, -0.0))
case("max over an axis of odd numbers", lambda a: a.amax(1), values(NAN, 1, 1, NAN, INF, INF, -INF, -INF, 1, 2, shape=(5, 2)))
case("max over an outer axis of odd numbers", lambda a: a.amax(0), values(NAN, 1, 1, NAN, INF, INF, -INF, -INF, 1, 2, shape=(2, 5)))
case("argmax of odd numbers", lambda a: a.argmax(1), values(1, NAN, NAN, -INF, -INF, -INF, NAN, 5, 1, INF, 1, INF, shape=(4, 3)), gradients=False)
case("less with odd numbers", lambda a, b: (a < b).to(F64), values(NAN, 1, -INF, INF), values(1, NAN, INF, INF), gradients=False)
case("equal with odd numbers", lambda a, b: (a == b).to(F64), values(NAN, NAN, -INF, INF), values(1, NAN, INF, INF), gradients=False)
ODD_IMAGE = values(NAN, 1, 5, 6, 2, 3, 7, 8, -INF, -INF, 1, 2, -INF, -INF, NAN, INF, shape=(1, 1, 4, 4))
case("max pool of tiles of odd numbers", lambda x: F.max_pool2d(x, 2), ODD_IMAGE, gradients=False)
case("max pool of overlapping windows of odd numbers", lambda x: F.max_pool2d(x, 2, 1), ODD_IMAGE, gradients=False)
ODD_ROWS = values(NAN, 1, 0, INF, 1, 0, -INF, 1, 0, -INF, -INF, -INF, shape=(4, 3))
case("log-softmax of odd numbers", lambda a: F.log_softmax(a, -1), ODD_ROWS)
case("cross entropy beside classes that are ruled out", F.cross_entropy, values(1, 2, -INF, -INF, 1, 2, shape=(2, 3)), ints(0, 1))
case("cross entropy of a class that is ruled out", F.cross_entropy, values(1, 2, -INF, 0, 1, 2, shape=(2, 3)), ints(2, 1))
for row, name in enumerate(["NaN", "an infinite logit", "a ruled out class", "no class left"]):
    case(f"cross entropy with {name}", F.cross_entropy, ODD_ROWS[row : row + 1], ints(1))
ODD = values(INF, INF, -INF, -INF, INF, NAN)
for name, f, b in [
    ("mean squared error", F.mse_loss, torch.zeros(6)),
    ("l1", F.l1_loss, torch.zeros(6)),
]:
    case(f"{name} of odd numbers", lambda a: f(a, b.to(F64), reduction="none"), ODD)
odd, cases = cases, ordinary

# Layers. The engine's matrices are [in out], PyTorch's [out in].


def call(module, state, *args):
    return functional_call(module.to(F64), state, args)


def linear(w, b, name=""):
    return {name + "weight": w.T, name + "bias": b}


case("linear layer", lambda x, w, b: call(torch.nn.Linear(4, 2), linear(w, b), x), CUBE, draw(4, 2), draw(2))
case("conv2d layer",
     lambda x, f, b: call(torch.nn.Conv2d(3, 4, (3, 2), **WINDOW), {"weight": f, "bias": b}, x),
     IMAGE, draw(4, 3, 3, 2), draw(4))
case("layer norm layer",
     lambda x, g, b: call(torch.nn.LayerNorm(4), {"weight": g, "bias": b}, x), CUBE, draw(4), draw(4))
case("embedding layer",
     lambda i, t: call(torch.nn.Embedding(5, 3), {"weight": t}, i), ints(3, 0, 3, 1, 1, 4, shape=(2, 3)), draw(5, 3))


def batch_norm(train):
    def f(x, g, b, m, v):
        mean, variance = m.detach().clone(), v.detach().clone()
        layer = torch.nn.BatchNorm2d(3).train(train)
        state = {"weight": g, "bias": b, "running_mean": mean, "running_var": variance}
        return call(layer, state, x), mean, variance
    return f


NORM = (IMAGE, draw(3), draw(3), draw(3), draw(3, low=0.5))
case("batch norm layer in training", batch_norm(True), *NORM)
case("batch norm layer in evaluation", batch_norm(False), *NORM)


def recurrent(cell):
    def f(x, h, wi, bi, wh, bh):
        state = {"weight_ih": wi.T, "bias_ih": bi, "weight_hh": wh.T, "bias_hh": bh}
        return call(cell, state, x, h)
    return f


case("rnn cell", recurrent(torch.nn.RNNCell(4, 3)), draw(2, 4), draw(2, 3), draw(4, 3), draw(3), draw(3, 3), draw(3))


def attention_state(q, bq, k, bk, v, bv, w, b, name=""):
    return {name + "in_proj_weight": torch.cat([q.T, k.T, v.T]), name + "in_proj_bias": torch.cat([bq, bk, bv]),
            **linear(w, b, name + "out_proj.")}


def later(t):
    return torch.triu(torch.ones(t, t, dtype=torch.bool), 1)


def attention(causal):
    def f(x, *state):
        mask = later(x.shape[1]) if causal else None
        layer = torch.nn.MultiheadAttention(6, 2, batch_first=True).to(F64)
        return functional_call(layer, attention_state(*state), (x, x, x), {"attn_mask": mask, "need_weights": False})[0]
    return f


def linears(*shapes):
    return [t for i, o in shapes for t in (draw(i, o, low=-1, high=1), draw(o, low=-1, high=1))]


SEQUENCE = draw(2, 5, 6)
case("multi-head attention", attention(False), SEQUENCE, *linears(*[(6, 6)] * 4))
case("causal multi-head attention", attention(True), SEQUENCE, *linears(*[(6, 6)] * 4))


def block(x, g1, b1, *rest):
    attending, (g2, b2, up, bup, down, bdown) = rest[:8], rest[8:]
    layer = torch.nn.TransformerEncoderLayer(6, 2, 8, dropout=0, batch_first=True, norm_first=True).to(F64)
    state = {"norm1.weight": g1, "norm1.bias": b1, "norm2.weight": g2, "norm2.bias": b2,
             **attention_state(*attending, name="self_attn."), **linear(up, bup, "linear1."), **linear(down, bdown, "linear2.")}
    return functional_call(layer, state, (x,), {"src_mask": later(x.shape[1]), "is_causal": True})


case("transformer block", block, SEQUENCE, draw(6), draw(6), *linears(*[(6, 6)] * 4),
     draw(6), draw(6), *linears((6, 8), (8, 6)))


# Optimizers: ten steps each, the second parameter without a gradient at some.

STEPS = 10
sequences = []


def sequence(name, make, average=None):
    start = [draw(3), draw(2, 2)]
    gradients = [[draw(3), None if step in (0, 4) else draw(2, 2)] for step in range(STEPS)]
    params = [torch.nn.Parameter(p.to(F64)) for p in start]
    optimizer = make(params)
    holder = torch.nn.ParameterList(params)
    averaged = None
    row = {"name": name, "start": start, "gradients": gradients, "after": []}
    if average:
        row["averages"] = []
    for step in gradients:
        for p, g in zip(params, step):
            p.grad = None if g is None else g.to(F64)
        optimizer.step()
        row["after"].append([p.detach().clone() for p in params])
        if average:
            # PyTorch's first update copies, as ours does.
            if averaged is None:
                averaged = torch.optim.swa_utils.AveragedModel(
                    holder, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(average))
            averaged.update_parameters(holder)
            row["averages"].append([p.detach().clone() for p in averaged.module])
    sequences.append(row)


sequence("sgd", lambda p: torch.optim.SGD(p, 0.1))
sequence("sgd with momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))
sequence("adam", lambda p: torch.optim.Adam(p, 0.05))
sequence("adam with other betas and epsilon", lambda p: torch.optim.Adam(p, 0.05, betas=(0.5, 0.8), eps=0.1))
sequence("adamw", lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.3))
sequence("an exponential moving average", lambda p: torch.optim.SGD(p, 0.1), average=0.75)

# The file: one line a case, each number the shortest that reads back as its float32.


def number(x):
    if not np.isfinite(x):
        return {"nan": '"NaN"', "inf": '"Inf"', "-inf": '"-Inf"'}[str(float(x))]
    s = np.format_float_positional(np.float32(x), unique=True, trim="-")
    e = np.format_float_scientific(np.float32(x), unique=True, trim="-")
    return min(s, e, key=len)


def encode(x):
    if isinstance(x, torch.Tensor):
        flat = x.reshape(-1).tolist()
        shape = json.dumps(list(x.shape))
        if x.is_floating_point():
            return f'{{"shape":{shape},"floats":[{",".join(map(number, flat))}]}}'
        return f'{{"shape":{shape},"ints":{json.dumps(flat)}}}'
    if isinstance(x, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{encode(v)}" for k, v in x.items()) + "}"
    if isinstance(x, list):
        return "[" + ",".join(map(encode, x)) + "]"
    return json.dumps(x)


def lines(rows):
    return "[\n" + ",\n".join(map(encode, rows)) + "\n]"


target = pathlib.Path(__file__).with_name("golden.json")
target.write_text(
    f'{{"torch":{json.dumps(torch.__version__)},\n"cases":{lines(cases)},\n"odd":{lines(odd)},\n'
    f'"sequences":{lines(sequences)}}}\n')
print(f"{target}: {len(cases)} cases, {len(odd)} of odd numbers, {len(sequences)} sequences, {target.stat().st_size} bytes")
