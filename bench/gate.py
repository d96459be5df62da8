#!/usr/bin/env python3
"""Figures of memdiag gate, by its exit codes: 0 passes, 1 fails, 4 cannot tell.

    bench/gate.py corpus [SEEDS [FIRST]]   every workload, and every leak repaired
    bench/gate.py repeat [N [SCRIPT ...]]  the same jobs over and over, their verdicts counted
    bench/gate.py steady [N]               services of plain Python for 6 s by the clock, bounded and leaking: their verdicts counted
    bench/gate.py least                    from how many steps on a block a step is found

MEMDIAG names the program, else it is built; PYTHON is one with PyTorch, for SCRIPTs and the last line of least.
"""

import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = tempfile.mkdtemp(prefix="memdiag-gate-")
JOB = """import sys
from memdiag import mark
kept = []
for step in range(1, int(sys.argv[1]) + 1):
    batch = bytes(3000)
    if sys.argv[2] == "leak":
        kept.append(batch)
    mark(step=step)
"""


SERVICE = """import sys, time
kind, leak = sys.argv[1], sys.argv[2] == "leak"
cache = [] if kind == "list" else {}
def handle(i):
    answer = bytes(2000) if kind == "bytes" else {"id": i, "parts": [float(i + j) for j in range(9)]}
    if kind == "list":
        cache.append(answer)
        if len(cache) > 1000 and not leak:
            del cache[:500]
    else:
        cache[i] = answer
        if len(cache) > 500 and not leak:
            del cache[next(iter(cache))]
i, end = 0, time.monotonic() + 6
while time.monotonic() < end:
    handle(i)
    i += 1
    time.sleep(0.0005)
"""


TORCH_JOB = """import sys
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for _ in range(int(sys.argv[1])):
    loss = model(torch.ones(4, 8)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
"""


def gate(*arguments):
    """The gate's exit code for a job."""
    run = tempfile.mkdtemp(dir=FOLDER)
    done = subprocess.run([MEMDIAG, "gate", "-q", "-o", os.path.join(run, "run"), *arguments], cwd=run, stdin=subprocess.DEVNULL, capture_output=True)
    shutil.rmtree(run)
    if done.returncode not in (0, 1, 4):
        sys.exit("%s: %s" % (arguments, done.stderr.decode()))
    return done.returncode


def each(jobs):
    """The exit codes of jobs, each of arguments, as many at a time as there are processors."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: gate(*job), jobs))


def corpus(seeds=3, first=0):
    jobs, labels = [], []
    for seed in range(first, first + seeds):
        listed = subprocess.run([MEMDIAG, "workloads", "--seed", str(seed), "--format", "json"], check=True, capture_output=True).stdout
        for w in json.loads(listed)["workloads"]:
            job = ["--workload", w["id"], "--seed", str(seed), "--steps", str(w["steps"]), "--every", str(max(1, w["steps"] // 10))]
            jobs.append(job)
            labels.append(w["label"])
            if w["label"] == "leak":
                jobs.append(job + ["--fixed"])
                labels.append("repaired")
    codes = each(jobs)
    print("%-10s %6s %6s %6s %6s" % ("label", "runs", "fail", "pass", "open"))
    for label in dict.fromkeys(labels):
        count = collections.Counter(c for c, of in zip(codes, labels) if of == label)
        print("%-10s %6d %6d %6d %6d" % (label, sum(count.values()), count[1], count[0], count[4]))
    for job, label, code in zip(jobs, labels, codes):
        if code != (1 if label == "leak" else 0):
            print("%s: exit %d: memdiag gate %s" % (label, code, " ".join(job)))


def repeat(times=50, *scripts):
    python = os.environ.get("PYTHON", "python3")
    os.environ["OMP_NUM_THREADS"] = "1"
    jobs = {kind: ["--every", "5", "--python-heap", "on", "--", python, job(JOB), "100", kind] for kind in ("leak", "clean")}
    jobs.update({os.path.basename(s): ["--", python, os.path.abspath(s)] for s in scripts})
    for name, arguments in jobs.items():
        print("%-20s %s" % (name, dict(collections.Counter(each([arguments] * times)))), flush=True)


def steady(times=20):
    python = os.environ.get("PYTHON", "python3")
    for kind in "bytes", "dict", "list":
        for how in "leak", "clean":
            arguments = ["--", python, job(SERVICE), kind, how]
            print("%-20s %s" % (kind + ", " + how, dict(collections.Counter(each([arguments] * times)))), flush=True)


def least():
    def first(name, steps, arguments):
        found = [code == 1 for code in each([arguments(n) for n in steps])]
        at = next((n for i, n in enumerate(steps) if all(found[i:])), None)
        print("%-40s %s" % (name, at), flush=True)

    steps = range(5, 125, 5)
    for seed in range(3):
        first("L30, seed %d" % seed, steps, lambda n: ["--workload", "L30", "--seed", str(seed), "--steps", str(n)])
    first("Python's heap, --every 5", steps, lambda n: ["--every", "5", "--python-heap", "on", "--", "python3", job(JOB), str(n), "leak"])
    if "PYTHON" in os.environ:
        os.environ["OMP_NUM_THREADS"] = "1"
        first("PyTorch on the CPU, --every 5", range(15, 121, 15), lambda n: ["--every", "5", "--", os.environ["PYTHON"], job(TORCH_JOB), str(n)])


def job(text):
    """The path of a script."""
    path = os.path.join(FOLDER, "job%08x.py" % zlib.crc32(text.encode()))
    with open(path, "w") as f:
        f.write(text)
    return path


MEMDIAG = os.environ.get("MEMDIAG") or os.path.join(FOLDER, "memdiag")
if "MEMDIAG" not in os.environ:
    subprocess.run(["go", "build", "-o", MEMDIAG, "./cmd/memdiag"], cwd=ROOT, check=True)
try:
    what = {"corpus": corpus, "repeat": repeat, "steady": steady, "least": least}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if what is None:
        sys.exit(__doc__)
    what(*(int(a) if a.isdigit() else a for a in sys.argv[2:]))
finally:
    shutil.rmtree(FOLDER)
