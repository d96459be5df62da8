"""A pool of threads computes spectra job by job; its futures are awaited and dropped in groups of fifty."""
# kind: services
# expect: clean
import concurrent.futures

import numpy as np


def spectrum(seed):
    signal = np.random.default_rng(seed).normal(size=8192)
    return np.abs(np.fft.rfft(signal))


total = 0.0
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for group in range(500):
        futures = [pool.submit(spectrum, 50 * group + i) for i in range(50)]
        total += sum(float(future.result().max()) for future in futures)
print(f"total {total:.4f}")
