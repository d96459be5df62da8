#!/usr/bin/env bash
# What `memdiag record` costs a training run: the processor time of its loop with and without, by turns,
# and the ratio of the medians. Needs a Python with PyTorch: MEMDIAG_TORCH_PYTHON, or what `make torch` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${MEMDIAG_TORCH_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/memdiag/torch/bin/python}
times=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/memdiag" ./cmd/memdiag
export OMP_NUM_THREADS=1
for net in conv mlp; do
  for ((i = 0; i < times; i++)); do
    "$python" bench/record_loop.py "$net" >>"$work/$net.alone"
    "$work/memdiag" -q record -o "$work/$net.$i" -- "$python" bench/record_loop.py "$net" >>"$work/$net.recorded"
  done
  "$python" - "$net" "$work/$net.alone" "$work/$net.recorded" <<'EOF'
import statistics, sys
net, *files = sys.argv[1:]
rows = [[line.split() for line in open(f)] for f in files]
assert len({r[1] for rs in rows for r in rs}) == 1, "results differ"
alone, recorded = (statistics.median(float(r[0]) for r in rs) for rs in rows)
print(f"{net}: alone {alone:.3f} s, recorded {recorded:.3f} s, ratio {recorded / alone:.3f}; medians of {len(rows[0])}, equal results")
EOF
done
