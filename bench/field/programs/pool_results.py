"""Jobs go to a multiprocessing pool, and their results wait in a list to the end; --fixed takes each when it is there."""
# kind: loaders
# holder: pending
# cause: container-grows outputs-kept
# rate: ~16500 B/job
import multiprocessing
import sys

import numpy as np

FIXED = "--fixed" in sys.argv


def features(seed):
    return np.sort(np.random.default_rng(seed).normal(size=(20, 2048)), axis=1)[0]


def main():
    pending = []
    total = 0.0
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for job in range(2500):
            result = pool.apply_async(features, (job,))  # leak
            total += result.get()[0]
            pending.append(result)  # leak
            if FIXED:
                pending.clear()
    print(f"total {total:.5f}")


if __name__ == "__main__":
    main()
