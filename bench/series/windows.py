"""Series of what is freed again: caches, rings, and lists that are emptied."""

from simulation import KiB, even, simple
from truth import series


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


@series(False)
def t56_epochlist(o):
    "losses of an epoch in a list, emptied at its end of 100 steps; dumps at 50, 150, …"
    simple(o, 650, [50 + 100 * i for i in range(7)], saw(100, 4), history=0, annotate=False)


@series(False, ok=[0, 4])
def t57_growinglists(o):
    "list of an epoch, emptied each 200; dumps at uneven 40, 190, 230, 395, 420, 590, 640, 790"
    simple(o, 800, [40, 190, 230, 395, 420, 590, 640, 790], saw(200), history=0, annotate=False)


@series(False, ok=[0, 4])
def t61_log(o):
    "unique tokens: number of keys grows like a logarithm, then ends"
    seen = {}

    def leak(s, n):
        k = int(s.rng.paretovariate(0.7))
        if k < 60 and k not in seen:
            seen[k] = s.at("vocab.py:9", 40 * KiB)

    simple(o, 900, even(900, 12), leak, history=0, annotate=False)
