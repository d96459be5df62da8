"""Vectors of words are cached, of a vocabulary of 100,000 of which ever fewer are new; --fixed caches the 200 newest."""
# kind: language
# expect: filling
# holder: vector_of
# rate: 1024 B/word
import functools
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
VOCABULARY = 100_000


@functools.lru_cache(maxsize=200 if FIXED else VOCABULARY)
def vector_of(word):
    vector = np.random.default_rng(word).normal(size=128)  # fills
    return vector / np.linalg.norm(vector)  # fills


rng = np.random.default_rng(0)
total = 0.0
for sentence in range(40_000):
    words = np.minimum(rng.zipf(1.3, size=12), VOCABULARY)
    total += float(sum(vector_of(int(word)) for word in words)[0])
print(f"total {total:.6f}")
