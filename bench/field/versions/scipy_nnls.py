"""optimize.nnls of SciPy 1.16.1 does not free its work arrays."""
# kind: numpy
# leaky: scipy==1.16.1
# mended: scipy==1.16.2
# met in: scipy/scipy#23563
# holder: -
# cause: host-only
# rate: ~4000 B/call
import numpy as np
from scipy.optimize import nnls

rng = np.random.default_rng(0)
matrix = rng.random((40, 12))
total = 0.0
for call in range(60_000):
    solution, residual = nnls(matrix, rng.random(40))  # leak
    total += residual + np.median(rng.random(500))
print(f"total {total:.4f}")
