"""Proves memdiag on a real GPU, in ten minutes at most: python bench/gpu.py [--report FILE] [--stand-in] [--all] [--only PART].

It needs this repository, a Python with PyTorch (PYTHON, by default this one), and the memdiag program (MEMDIAG; built by
go where that is not set). It installs nothing. The report, in Markdown, has a line for each part:

* our engine's leaks on the device, through Vulkan: the gate ends with 1, and with 0 for the mended ones;
* `memdiag record` of leaking and clean scripts with their tensors on the GPU: verdict, line, holder, equal output;
* pinned memory, a GPU that runs full, and (stand-in) an accelerator whose allocator has no record;
* what recording costs: a training alone, with PyTorch's history alone, and recorded, by turns.

--stand-in rehearses it where there is no GPU: the allocator's record is a stand-in's, and Vulkan's device a software driver.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LEAKING = ["leak_metrics", "leak_hooks", "leak_loss", "leak_eval", "leak_lru", "leak_chain"]
CLEAN = ["clean_ema", "clean_lru", "clean_plain"]
WORKLOADS = ["L01", "L12", "L30"]
PARTS = ["engine", "scripts", "cost", "beyond"]


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed, self.lines = options, folder, 0, []
        self.python = os.environ.get("PYTHON") or sys.executable
        self.memdiag = os.environ.get("MEMDIAG")
        if not self.memdiag:
            self.memdiag = os.path.join(folder, "memdiag")
            subprocess.run(["go", "build", "-o", self.memdiag, "./cmd/memdiag"], check=True, cwd=ROOT)
        runner = "testdata/cuda/standin.py" if options.stand_in else "bench/gpu/ongpu.py"
        self.on_gpu = [self.python, os.path.join(ROOT, runner)]
        self.env = dict(os.environ, OMP_NUM_THREADS="1", CUBLAS_WORKSPACE_CONFIG=":4096:8")

    def run(self, *command, **env):
        return subprocess.run(command, capture_output=True, text=True, env=dict(self.env, **env))

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

    def engine(self):
        self.say("## Our engine on the device\n\n| workload | right | gate |\n|---|---|---|")
        for name in WORKLOADS:
            for mended in False, True:
                out = os.path.join(self.folder, name + "-%d" % mended)
                done = self.run(self.memdiag, "gate", "-q", "--workload", name, "--backend", "gpu", "-o", out, *(["--fixed"] if mended else []))
                self.check(name + (" mended" if mended else ""), done.returncode == (0 if mended else 1), first(done))

    def scripts(self):
        self.say("\n## Scripts with PyTorch on the GPU\n\n| script | right | said |\n|---|---|---|")
        names = every() if self.options.all else LEAKING + CLEAN
        # A GPU is one program's at a time, so that the driver's figures are too.
        with concurrent.futures.ThreadPoolExecutor(2 if self.options.stand_in else 1) as pool:
            for name, (right, said) in zip(names, pool.map(self.script, names)):
                self.check(name, right, said)

    def script(self, name):
        """Whether what memdiag says of a script is right, and what that is."""
        return self.judged(name, os.path.join(ROOT, "testdata", "scripts", name + ".py"))

    def judged(self, name, path, **env):
        out = os.path.join(self.folder, name)
        plain = self.run(*self.on_gpu, path, **env)
        recorded = self.run(self.memdiag, "record", "-o", out, "--", *self.on_gpu, path, **env)
        if plain.returncode != recorded.returncode or plain.stdout != recorded.stdout:
            return False, "the output differs, or it failed: " + (recorded.stderr or plain.stderr)[-200:].replace("\n", " ")
        gate = self.run(self.memdiag, "gate", out)
        if name.startswith("clean"):
            return gate.returncode == 0, first(gate)
        findings = json.loads(self.run(self.memdiag, "diff", "--format", "json", out).stdout or "{}").get("findings") or [{}]
        top = findings[0]
        about = "%s; held by %s; cause %s" % (first(gate), (top.get("holder") or {}).get("path"), (top.get("cause") or {}).get("id"))
        return gate.returncode == 1 and guilty(top, path), about

    def beyond(self):
        self.say("\n## Beyond a GPU's live memory\n\n| what | right | said |\n|---|---|---|")
        self.check("pinned memory", *self.judged("pinned", os.path.join(HERE, "gpu", "pinned.py")))
        oom = os.path.join(self.folder, "oom")
        done = self.run(self.memdiag, "record", "-o", oom, "--", *self.on_gpu, os.path.join(HERE, "gpu", "oom.py"), STANDIN_LIMIT=str(256 << 20))
        snapshots = sorted((n for n in os.listdir(oom) if n.startswith("snapshot_")), key=lambda n: int("".join(filter(str.isdigit, n)) or 0))
        show = self.run(self.memdiag, "show", "--at", "oom", os.path.join(oom, snapshots[-1])) if snapshots else done
        self.check("the snapshot before memory is out", done.stdout == "out of memory\n" and show.returncode == 0 and "oom.py" in show.stdout, first(show))
        if not self.options.only:
            runs = glob.glob(os.path.join(self.folder, "*", "snapshot_*.pickle"))
            light = sum(b"light" in open(path, "rb").read(400) for path in runs)
            self.check("snapshots without the record", 0 < light < len(runs), "%d of %d" % (light, len(runs)))
        if self.options.stand_in:
            path = os.path.join(ROOT, "testdata", "scripts", "leak_metrics.py")
            self.check("an accelerator without a record", *self.judged("mps", path, STANDIN_KIND="mps"))

    def cost(self):
        self.say("\n## What recording costs\n")
        training = os.path.join(HERE, "gpu", "training.py")
        steps = "60" if self.options.stand_in else "400"
        ways = {
            "alone": lambda n: self.run(*self.on_gpu, training, steps),
            "history": lambda n: self.run(*self.on_gpu, training, steps, MEMDIAG_HISTORY="1"),
            "memdiag": lambda n: self.run(self.memdiag, "record", "-q", "-o", os.path.join(self.folder, "cost%d" % n), "--", *self.on_gpu, training, steps),
        }
        times, losses = {way: [] for way in ways}, set()
        for n in range(self.options.rounds):
            for way, run in ways.items():
                micros, loss = run(n).stdout.split()
                times[way].append(float(micros))
                losses.add(loss)
        alone, history, memdiag = (statistics.median(times[way]) for way in ways)
        self.say("A step of a transformer, median of %d rounds by turns: alone 1, with PyTorch's history %.3f, with memdiag %.3f (%.3f of history)." % (
            self.options.rounds, history / alone, memdiag / alone, memdiag / history))
        self.failed += len(losses) > 1
        self.say("The losses are %s." % ("equal to the bit" if len(losses) == 1 else "**NOT equal**: " + ", ".join(sorted(losses))))


def every():
    """All scripts of the folder that leak or are clean with PyTorch, in one process."""
    folder, out = os.path.join(ROOT, "testdata", "scripts"), []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        if name.startswith(("leak_", "clean_")) and "import torch" in text and "fork" not in text and "multiprocessing" not in text:
            out.append(name[:-3])
    return out


def first(done):
    return (done.stdout.strip() or done.stderr.strip() or "nothing").split("\n")[0]


def guilty(finding, path):
    """Whether a finding is at the line that the script marks, kept by the holder that it marks."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    line = next(i for i, text in enumerate(lines, 1) if "# leak" in text)
    holder = next(text.split("# holder:")[1].strip() for text in lines if "# holder:" in text)
    at = any(f["file"].endswith(os.path.basename(path)) and f["line"] == line for f in finding["frames"])
    return at and finding["verdict"] == "leak" and holder in (finding.get("holder") or {}).get("path", "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--report", default="gpu-report.md", help="where the report goes")
    p.add_argument("--stand-in", action="store_true", help="rehearse without a GPU")
    p.add_argument("--all", action="store_true", help="record all scripts, in place of nine")
    p.add_argument("--only", choices=PARTS, help="do one part")
    p.add_argument("--rounds", type=int, default=5, help="rounds of the measurement of costs")
    o = p.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(o, folder)
        bench.machine()
        for part in [o.only] if o.only else PARTS:
            getattr(bench, part)()
    bench.say("\n%s after %.0f s." % ("All is right" if not bench.failed else "**%d wrong**" % bench.failed, time.monotonic() - begun))
    with open(o.report, "w", encoding="utf-8") as f:
        f.write("\n".join(bench.lines) + "\n")
    return min(1, bench.failed)


if __name__ == "__main__":
    sys.exit(main())
