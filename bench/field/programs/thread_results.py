"""A supervisor starts a thread per job and keeps each thread, with its result; --fixed forgets those that have ended."""
# kind: services
# holder: workers
# cause: container-grows
# rate: 32768 B/job
import sys
import threading

import numpy as np

FIXED = "--fixed" in sys.argv


class Worker(threading.Thread):
    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.spectrum = None

    def run(self):
        signal = np.random.default_rng(self.seed).normal(size=65_536)
        self.spectrum = np.abs(np.fft.fft(signal))[:4096].copy()  # leak


class Supervisor:
    def __init__(self):
        self.workers = []
        self.total = 0.0

    def submit(self, seed):
        worker = Worker(seed)
        self.workers.append(worker)  # leak
        worker.start()
        worker.join()
        self.total += float(worker.spectrum.max())
        if FIXED:
            self.workers = [worker for worker in self.workers if worker.is_alive()]


supervisor = Supervisor()
for job in range(2500):
    supervisor.submit(job)
print(f"total {supervisor.total:.4f}")
