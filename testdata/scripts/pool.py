"""Workers of a pool keep what they compute, as large as what they had before they were watched."""

import multiprocessing
import time

import torch

torch.set_num_threads(1)
kept = []  # holder: kept


def features(seed):
    x = torch.randn(128, 256, generator=torch.Generator().manual_seed(seed))
    y = x @ x.T  # leak
    kept.append(y)
    time.sleep(0.01)  # the data would come from somewhere
    return float(y.trace())


def main():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        total = sum(pool.map(features, range(2000), chunksize=4))
    print(f"{total:.1f}")


if __name__ == "__main__":
    main()
