"""Each job registers its own clean-up with atexit, which holds it to the end; --fixed cleans up at once."""
# kind: services
# holder: -
# cause: container-grows
# rate: 16384 B/job
import atexit
import sys

import numpy as np

FIXED = "--fixed" in sys.argv


class Job:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.buffer = self.rng.normal(size=2048)  # leak
        if not FIXED:
            atexit.register(self.close)  # leak

    def run(self):
        noise = self.rng.normal(size=(20, 2048))
        return float(np.sort(self.buffer + noise, axis=1)[:, :100].sum())

    def close(self):
        self.buffer = None


total = 0.0
for i in range(4000):
    job = Job(i)
    total += job.run()
    if FIXED:
        job.close()
print(f"total {total:.4f}")
