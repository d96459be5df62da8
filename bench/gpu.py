"""Proves memdiag on a real GPU, in ten minutes at most: python bench/gpu.py [--report FILE] [--stand-in] [--all] [--only PART].

It needs this repository, a Python with PyTorch (PYTHON, by default this one), and three programs of ours, which go builds
where --bin names no folder that --build has filled. It installs nothing. The report, in Markdown, has a line for each part:

* kernels: the tests of our engine's kernels and workloads on the device, through Vulkan;
* engine: our engine's leaks on the device: the gate ends with 1, and with 0 for the mended ones;
* scripts: `memdiag record` of leaking and clean scripts with their tensors on the GPU: verdict, line, holder, equal output;
* features: the same of scripts that use what only a GPU has (graphs, half precision, streams, NCCL) and of libraries;
* beyond: pinned memory, expandable segments, a GPU by its UUID, JAX, a GPU that runs full, and (stand-in) an accelerator whose
  allocator has no record;
* speed: products, convolutions and trainings of our engine beside PyTorch's, and what recording them costs;
* cost: what recording costs: a training alone, with PyTorch's history alone, and recorded, by turns.

--stand-in rehearses it where there is no GPU: the allocator's record is a stand-in's, and Vulkan's device a software driver.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LEAKING = ["leak_metrics", "leak_hooks", "leak_loss", "leak_eval", "leak_lru", "leak_chain"]
CLEAN = ["clean_ema", "clean_lru", "clean_plain", "clean_generator", "clean_replay"]
WORKLOADS = ["L01", "L12", "L30"]
PARTS = ["kernels", "engine", "scripts", "features", "beyond", "speed", "cost"]
NCCL = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "ALLOC", "NCCL_DEBUG_FILE": "/tmp/memdiag-nccl.%p"}
LONGEST = 240  # seconds of one program
PROGRAMS = {"memdiag": ["build", "./cmd/memdiag"], "train": ["build", "./bench/train"], "gpu.test": ["test", "-c", "./engine/gpu"]}


def build(folder):
    for name, (verb, *rest) in PROGRAMS.items():
        subprocess.run(["go", verb, "-ldflags=-s -w", "-o", os.path.join(os.path.abspath(folder), name), *rest], check=True, cwd=ROOT)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed, self.lines = options, folder, 0, []
        self.python = os.environ.get("PYTHON") or sys.executable
        self.bin = os.path.abspath(options.bin or folder)
        if not options.bin:
            build(folder)
        self.memdiag = os.path.join(self.bin, "memdiag")
        self.stand_in = [self.python, os.path.join(ROOT, "testdata/cuda/standin.py")]
        self.on_gpu = self.stand_in if options.stand_in else [self.python, os.path.join(HERE, "gpu", "ongpu.py")]
        self.env = dict(os.environ, OMP_NUM_THREADS="1", CUBLAS_WORKSPACE_CONFIG=":4096:8")

    def run(self, *command, **env):
        try:
            return subprocess.run(command, capture_output=True, text=True, env=dict(self.env, **env), timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "it took over %d s" % LONGEST)

    def say(self, line):
        print(line, flush=True)
        self.lines.append(line)

    def check(self, what, right, said):
        self.failed += not right
        self.say("| %s | %s | %s |" % (what, "yes" if right else "**NO**", said.replace("|", "/").strip()))

    def machine(self):
        self.say("# memdiag on a GPU\n")
        self.say("%s, %s, %s" % (time.strftime("%Y-%m-%d"), platform.platform(), self.run(self.memdiag, "version").stdout.strip()))
        about = "import torch; print('PyTorch', torch.__version__, 'on', torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU')"
        self.say(self.run(self.python, "-c", about).stdout.strip() + (", **with a stand-in for its allocator**" if self.options.stand_in else ""))
        self.say("\n```\n%s\n```\n" % self.run(self.memdiag, "devices").stdout.strip())

    def kernels(self):
        self.say("## The kernels on the device\n\n| tests | right | said |\n|---|---|---|")
        tests = "TestKernels" if self.options.stand_in else "."
        done = subprocess.run([os.path.join(self.bin, "gpu.test"), "-test.run", tests, "-test.v"], capture_output=True, text=True, cwd=os.path.join(ROOT, "engine", "gpu"), env=self.env)
        results = re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.M)
        failed = [name for how, name in results if how == "FAIL"]
        self.keep("kernels.txt", done.stdout + done.stderr)
        passed = sum(how == "PASS" for how, _ in results)
        # A test that finds no device skips, and proves nothing.
        ran = [name for how, name in results if how == "PASS" and name.startswith("TestKernels/")]
        absent = done.stdout.count("Vulkan driver here")
        self.check("engine/gpu", done.returncode == 0 and bool(ran) and not absent, "%d pass, %d skip, %d fail %s" % (passed, sum(how == "SKIP" for how, _ in results), len(failed), " ".join(failed[:20])))

    def keep(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def engine(self):
        self.say("\n## Our engine on the device\n\n| workload | right | gate |\n|---|---|---|")
        for name in WORKLOADS:
            for mended in False, True:
                out = os.path.join(self.folder, name + "-%d" % mended)
                done = self.run(self.memdiag, "gate", "-q", "--workload", name, "--backend", "gpu", "-o", out, *(["--fixed"] if mended else []))
                self.check(name + (" mended" if mended else ""), done.returncode == (0 if mended else 1), first(done))

    def table(self, title, jobs):
        """Judges programs, each a name, the path, what runs it, and its environment."""
        self.say("\n## %s\n\n| script | right | said |\n|---|---|---|" % title)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for (name, *_), (right, said) in zip(jobs, pool.map(lambda job: self.judged(*job), jobs)):
                self.check(name, right, said)

    def scripts(self):
        names = every() if self.options.all else LEAKING + CLEAN
        self.table("Scripts with PyTorch on the GPU", [(name, os.path.join(ROOT, "testdata", "scripts", name + ".py"), self.on_gpu, {}) for name in names])

    def features(self):
        if self.options.stand_in:
            return self.say("\nGraphs, half precision, NCCL and libraries need a real GPU.")
        paths = sorted(glob.glob(os.path.join(HERE, "gpu", "features", "*.py")))
        self.table("What only a GPU has, and libraries", [(os.path.basename(path)[:-3], path, [self.python], NCCL) for path in paths])

    def judged(self, name, path, runner, env):
        """Whether what memdiag says of a script is right, and what that is."""
        out = os.path.join(self.folder, name)
        plain = self.run(*runner, path, **env)
        recorded = self.run(self.memdiag, "record", "-o", out, "--", *runner, path, **env)
        gate, diff = self.run(self.memdiag, "gate", out), self.run(self.memdiag, "diff", out)
        self.keep(name + ".txt", "\n".join(["plain %d" % plain.returncode, plain.stdout, plain.stderr, "recorded", recorded.stdout, recorded.stderr, "gate %d" % gate.returncode, gate.stdout, gate.stderr, diff.stdout]))
        if plain.returncode or plain.returncode != recorded.returncode or plain.stdout != recorded.stdout:
            return False, "the output differs, or it failed: " + (recorded.stderr or plain.stderr)[-200:].replace("\n", " ")
        if name.startswith("clean"):
            return gate.returncode == 0, first(gate)
        findings = json.loads(self.run(self.memdiag, "diff", "--format", "json", out).stdout or "{}").get("findings") or [{}]
        top = findings[0]
        about = "%s; held by %s; cause %s; %d findings" % (first(gate), (top.get("holder") or {}).get("path"), (top.get("cause") or {}).get("id"), sum(f.get("verdict") == "leak" for f in findings))
        return gate.returncode == 1 and guilty(top, path), about

    def beyond(self):
        metrics = os.path.join(ROOT, "testdata", "scripts", "leak_metrics.py")
        jobs = [("pinned memory", os.path.join(HERE, "gpu", "pinned.py"), self.on_gpu, {}),
                ("expandable segments", metrics, self.on_gpu, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})]
        if self.options.stand_in:
            jobs.append(("an accelerator without a record", metrics, self.on_gpu, {"STANDIN_KIND": "mps"}))
        else:
            uuid = re.search("GPU-[0-9a-f-]+", self.run("nvidia-smi", "-L").stdout)
            jobs.append(("a GPU by its UUID", metrics, self.on_gpu, {"CUDA_VISIBLE_DEVICES": uuid[0] if uuid else "GPU-"}))
            if self.run(self.python, "-c", "import jax; assert jax.default_backend() == 'gpu'").returncode == 0:
                jobs.append(("JAX", os.path.join(ROOT, "testdata", "scripts", "jax_leak.py"), [self.python], {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}))
        self.table("Beyond a GPU's live memory", jobs)
        oom = os.path.join(self.folder, "oom")
        done = self.run(self.memdiag, "record", "-o", oom, "--", *self.on_gpu, os.path.join(HERE, "gpu", "oom.py"), STANDIN_LIMIT=str(256 << 20))
        snapshots = sorted((n for n in os.listdir(oom) if n.startswith("snapshot_")), key=lambda n: int("".join(filter(str.isdigit, n)) or 0))
        show = self.run(self.memdiag, "show", "--at", "oom", os.path.join(oom, snapshots[-1])) if snapshots else done
        self.keep("oom.txt", done.stdout + done.stderr + show.stdout + show.stderr + self.run(self.memdiag, "diff", oom).stdout)
        self.check("the snapshot before memory is out", done.stdout == "out of memory\n" and show.returncode == 0 and "oom.py" in show.stdout, first(show))
        if not self.options.only:
            runs = glob.glob(os.path.join(self.folder, "*", "snapshot_*.pickle"))
            light = sum(b"light" in open(path, "rb").read(400) for path in runs)
            self.check("snapshots without the record", 0 < light < len(runs), "%d of %d" % (light, len(runs)))

    def speed(self):
        self.say("\n## Our engine beside PyTorch\n\nPyTorch in full precision (no TF32). Ratios are its time over ours.\n\n| what | PyTorch | ours | ratio |\n|---|---|---|---|")
        names = ["MatMul/64"] if self.options.stand_in else ["MatMul/512", "MatMul/2048", "MatMul/4096", "Conv2d"]
        peer = dict(line.split() for line in self.run(*self.peer, os.path.join(HERE, "gpu", "products.py"), *names).stdout.splitlines())
        ours = self.run(os.path.join(self.bin, "gpu.test"), "-test.run", "none", "-test.bench", "|".join("^Benchmark%s$" % name.replace("/", "$/^") for name in names), "-test.benchtime", "0.5s")
        self.keep("speed.txt", ours.stdout + ours.stderr)
        for name in names:
            found = re.search(r"^Benchmark%s\S*\s.*?([\d.]+) GFLOP/s" % name, ours.stdout, re.M)
            if found and name in peer:
                self.say("| %s | %s GFLOP/s | %.0f GFLOP/s | %.2f |" % (name, peer[name], float(found[1]), float(found[1]) / float(peer[name])))
            else:
                self.check(name, False, first(ours))
        steps = "10" if self.options.stand_in else "400"
        train = os.path.join(self.bin, "train")
        for model in ["mlp"] if self.options.stand_in else ["mlp", "conv", "transformer"]:
            times = {"torch": [], "ours": [], "recorded": []}
            for n in range(self.options.rounds):
                for way, done in (("torch", self.run(*self.peer, os.path.join(ROOT, "bench", "train_peer.py"), model, "gpu", steps)), ("ours", self.run(train, model, "gpu", steps)),
                                  ("recorded", self.run(train, model, "gpu", steps, "record", os.path.join(self.folder, "%s%d" % (model, n))))):
                    if done.returncode:
                        return self.check(model + " " + way, False, done.stderr[-200:])
                    times[way].append([float(t) for t in done.stdout.split()])
            of = lambda way, i: statistics.median(t[i] for t in times[way])
            self.say("| a step of the %s | %.2f ms | %.2f ms | %.2f; recording costs %.3f |" % (model, of("torch", 0) / 1e3, of("ours", 0) / 1e3, of("torch", 0) / of("ours", 0), of("recorded", 1) / of("ours", 1)))

    @property
    def peer(self):
        return self.stand_in if self.options.stand_in else [self.python]

    def cost(self):
        self.say("\n## What recording costs\n")
        training = os.path.join(HERE, "gpu", "training.py")
        # Steps of the large one are all alike, but for what is done in them beside.
        sizes = {"small": ("60", self.options.rounds)} if self.options.stand_in else {"small": ("2500", self.options.rounds), "large": ("300", 1)}
        for size, (steps, rounds) in sizes.items():
            ways = {
                "alone": lambda n: self.run(*self.peer, training, size, steps),
                "history": lambda n: self.run(*self.peer, training, size, steps, "history"),
                "memdiag": lambda n: self.run(self.memdiag, "record", "-q", "-o", os.path.join(self.folder, "cost-%s%d" % (size, n)), "--", *self.peer, training, size, steps),
            }
            times, losses = {way: [] for way in ways}, []
            for n in range(rounds):
                for way, run in ways.items():
                    if way == "alone" and n:
                        continue  # there is time for one
                    done = run(n)
                    if done.returncode:
                        return self.check(way, False, done.stderr[-200:])
                    *micros, loss = done.stdout.split()
                    times[way].append([float(m) for m in micros])
                    losses.append((loss, way))
            for which, name in enumerate(("median", "mean", "mean of the second half")):
                alone, history, memdiag = (statistics.median(t[which] for t in times[way]) for way in ways)
                self.say("* A %s transformer, the %s of %s steps, over %d rounds by turns: alone %.2f ms, with PyTorch's history %.3f of it, with memdiag %.3f (%.3f of history)." % (
                    size, name, steps, rounds, alone / 1e3, history / alone, memdiag / alone, memdiag / history))
            equal = len({loss for loss, _ in losses}) == 1
            self.failed += not equal
            self.say("* The losses are %s." % ("equal to the bit" if equal else "**NOT equal**: " + ", ".join(" ".join(pair) for pair in losses)))


def every():
    """All scripts of the folder that leak or are clean with PyTorch, in one process, but those whose tensors come from NumPy or a
    worker, which have to be on the CPU."""
    without = "clean_exit7", "clean_views", "leak_loader", "leak_numpy"
    folder, out = os.path.join(ROOT, "testdata", "scripts"), []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        if name.startswith(("leak_", "clean_")) and "import torch" in text and "fork" not in text and "multiprocessing" not in text and name[:-3] not in without:
            out.append(name[:-3])
    return out


def first(done):
    return (done.stdout.strip() or done.stderr.strip() or "nothing").split("\n")[0]


def guilty(finding, path):
    """Whether a finding is at the line that the script marks, kept by the holder that it marks."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    line = next(i for i, text in enumerate(lines, 1) if "# leak" in text)
    holder = next((text.split("# holder:")[1].strip() for text in lines if "# holder:" in text), "")
    at = any(f["file"].endswith(os.path.basename(path)) and f["line"] == line for f in finding["frames"])
    return at and finding["verdict"] == "leak" and holder in (finding.get("holder") or {}).get("path", "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--report", default="gpu-report.md", help="where the report goes")
    p.add_argument("--stand-in", action="store_true", help="rehearse without a GPU")
    p.add_argument("--all", action="store_true", help="record all scripts, in place of nine")
    p.add_argument("--only", choices=PARTS, nargs="+", help="do these parts")
    p.add_argument("--bin", help="a folder with our programs, which --build has filled")
    p.add_argument("--build", metavar="FOLDER", help="build our programs into a folder, and do nothing else")
    p.add_argument("--keep", help="a new folder to keep the recordings, and what the parts printed")
    p.add_argument("--jobs", type=int, help="programs recorded at once (default one for two processors, at most 12, and with --stand-in at least 2)")
    p.add_argument("--rounds", type=int, default=1, help="rounds of the measurement of costs, which take two minutes each after the first (default 1)")
    o = p.parse_args()
    if o.build:
        return build(o.build)
    o.jobs = o.jobs or max(2 if o.stand_in else 1, min(12, (os.cpu_count() or 1) // 2))
    begun = time.monotonic()
    if o.keep:
        os.makedirs(o.keep)
    with contextlib.nullcontext(o.keep) if o.keep else tempfile.TemporaryDirectory() as folder:
        bench = Bench(o, folder)
        bench.machine()
        for part in o.only or PARTS:
            getattr(bench, part)()
    bench.say("\n%s after %.0f s." % ("All is right" if not bench.failed else "**%d wrong**" % bench.failed, time.monotonic() - begun))
    with open(o.report, "w", encoding="utf-8") as f:
        f.write("\n".join(bench.lines) + "\n")
    return min(1, bench.failed)


if __name__ == "__main__":
    sys.exit(main())
