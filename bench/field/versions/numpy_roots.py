"""np.roots builds a companion matrix by np.diag and a flat assignment, which NumPy 2.4.0 leaks."""
# kind: numpy
# leaky: numpy==2.4.0
# mended: numpy==2.4.1
# met in: numpy/numpy#30547
# holder: -
# cause: host-only
# rate: ~2632 B/call
import numpy as np

x = np.linspace(-1, 1, 10_000)
total = 0.0
for i in range(60_000):
    total += abs(np.roots([3.2, 2, 1 + i % 7]).sum())  # leak
    total += np.polyval([3.2, 2, 1 + i % 7], x).max()
print(f"total {total:.4f}")
