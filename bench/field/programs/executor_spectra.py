"""Workers of a ProcessPoolExecutor remember what they computed in a global, by task; --fixed remembers nothing."""
# kind: services
# holder: computed
# cause: cache-without-bound container-grows
# rate: ~32900 B/task
import concurrent.futures
import multiprocessing
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
computed = {}


def spectrum(seed):
    if seed in computed:
        return float(computed[seed].max())
    signal = np.random.default_rng(seed).normal(size=8190)
    for _ in range(10):
        result = np.abs(np.fft.rfft(signal))  # leak
    if not FIXED:
        computed[seed] = result  # leak
    return float(result.max())


def main():
    total = 0.0
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for chunk in range(150):
            total += sum(pool.map(spectrum, range(chunk * 40, chunk * 40 + 40), chunksize=10))
    print(f"total {total:.6f}")


if __name__ == "__main__":
    main()
