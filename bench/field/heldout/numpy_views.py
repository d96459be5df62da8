"""The peaks of each signal are kept as a view, which keeps the whole signal; --fixed copies them."""
# kind: numpy
# holder: peaks
# cause: container-grows
# rate: 80000 B/signal
# met in: numpy/numpy#10273
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
rng = np.random.default_rng(0)
peaks = []
for i in range(2500):
    signal = np.sort(np.convolve(rng.normal(size=9937), np.hanning(64), "full"))  # leak
    top = signal[-5:]
    peaks.append(top.copy() if FIXED else top)  # leak
print(f"peak {np.mean(peaks):.6f}")
