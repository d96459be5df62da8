"""A history array is concatenated with each batch and so replaced by a larger one; --fixed keeps sums."""
# kind: numpy
# holder: history
# cause: cache-regrown container-grows
# rate: 2048 B/step
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)


class Normaliser:
    def __init__(self):
        self.history = np.zeros((0, 32))
        self.count = 0
        self.sum = np.zeros(32)

    def update(self, batch):
        if FIXED:
            self.count += len(batch)
            self.sum += batch.sum(0)
        else:
            self.history = np.concatenate([self.history, batch])  # leak

    def mean(self):
        return self.sum / self.count if FIXED else self.history.mean(0)


normaliser = Normaliser()
weights = np.zeros(32)
for step in range(4000):
    pool = rng.normal(1, 2, size=(1000, 32))
    batch = pool[np.argsort(pool.sum(1))[-8:]]
    normaliser.update(batch)
    if step % 100 == 99:
        weights += 0.1 * normaliser.mean()
print(f"weights {weights.sum():.5f}")
