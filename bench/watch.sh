#!/usr/bin/env bash
# What `memdiag watch` takes beside a training that leaks 64 KiB a step at 40 steps a second: each half minute the share of a core since the
# last line and since the start, and the watcher's memory, of which the pages of its binary are shared with the recorder.
# --steps trains eight numbers instead, so many steps as fast as it can, and keeps 32 bytes at each fiftieth: a million take four minutes.
# Needs a Python with PyTorch: MEMDIAG_TORCH_PYTHON, or what `make torch` installs. bench/watch.sh [SECONDS | --steps STEPS]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${MEMDIAG_TORCH_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/memdiag/torch/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -trimpath -ldflags='-s -w' -o "$work/memdiag" ./cmd/memdiag
cat >"$work/train.py" <<'EOF'
import time, torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
opt = torch.optim.Adam(net.parameters())
kept = []
while True:
    hidden = net[1](net[0](torch.randn(64, 256)))
    kept.append(hidden.detach())
    loss = nn.functional.cross_entropy(net[2](hidden), torch.randint(0, 10, (64,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    time.sleep(0.02)
EOF
cat >"$work/many.py" <<'EOF'
import sys, torch
weights = torch.zeros(8, requires_grad=True)
opt = torch.optim.SGD([weights], lr=0.01)
kept = []
for step in range(int(sys.argv[1])):
    batch = torch.ones(8)
    loss = (weights * batch).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        kept.append(batch)
EOF
export OMP_NUM_THREADS=1
program=("$python" "$work/train.py")
if [[ ${1:-} == --steps ]]; then program=("$python" "$work/many.py" "$2") seconds=3600; else seconds=${1:-240}; fi
timeout "$seconds" "$work/memdiag" -q record -o "$work/run" -- "${program[@]}" >/dev/null 2>&1 &
until [[ -f $work/run/run.json ]]; do sleep 0.1; done
"$work/memdiag" watch "$work/run" >"$work/said" 2>&1 &
watcher=$! ticks=$(getconf CLK_TCK)
of() { awk -v name="$1:" '$1 == name { print $2 / 1024 }' "/proc/$watcher/smaps_rollup"; }
for ((at = 30, before = 0; ; at += 30)); do
  sleep 30
  read -r -a stat 2>/dev/null <"/proc/$watcher/stat" || break
  [[ ${stat[2]} != Z ]] || break
  taken=$((stat[13] + stat[14]))
  awk -v at="$at" -v now="$taken" -v before="$before" -v hz="$ticks" -v rss="$(of Rss)" -v anonymous="$(of Anonymous)" -v pss="$(of Pss)" 'BEGIN {
    printf "%4d s  %.2f %% of a core, %.2f %% since the start  resident %.1f MiB, anonymous %.1f, proportional share %.1f\n",
      at, (now - before) / hz / 30 * 100, now / hz / at * 100, rss, anonymous, pss }'
  before=$taken
done
cat "$work/said"
