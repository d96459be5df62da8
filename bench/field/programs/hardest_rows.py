"""The hardest row of each batch is kept as a view, which keeps the whole batch; --fixed keeps the newest 50."""
# kind: numpy
# holder: hardest
# cause: container-grows
# rate: 131072 B/step
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)
weights = rng.normal(size=64)
hardest = []
for step in range(9000):
    batch = rng.normal(size=(256, 64))  # leak
    errors = np.abs(batch @ weights - batch.sum(axis=1))
    hardest.append(batch[errors.argmax()])  # leak
    if FIXED:
        del hardest[:-50]
    weights -= 1e-4 * (batch.T @ np.sign(batch @ weights))
    np.linalg.svd(batch[:40])
print(f"hardest {float(np.mean([each.mean() for each in hardest[-50:]])):.8f}")
