"""An embedding service caches vectors in a dict of 4096 that drops the oldest; it is full after half of the run."""
# kind: services
# expect: clean
import collections

import numpy as np

cache = collections.OrderedDict()


def embed(key):
    if key in cache:
        cache.move_to_end(key)
        return cache[key]
    vector = np.sort(np.random.default_rng(key).normal(size=8192))[:256].astype(np.float32)
    cache[key] = vector
    if len(cache) > 4096:
        cache.popitem(last=False)
    return vector


rng = np.random.default_rng(0)
total = 0.0
for request in range(24_000):
    total += float(embed(int(rng.integers(0, 9000)))[0])
print(f"total {total:.4f}")
