#!/usr/bin/env bash
# What `memdiag record` costs a training run: the time of its loop with and without, by turns, and the
# ratios of the medians: of the processor time, which says most on a busy machine, in the program alone and
# with the system, and by the clock. Needs a Python with PyTorch: MEMDIAG_TORCH_PYTHON, or what `make torch` installs.
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
assert len({r[-1] for rs in rows for r in rs}) == 1, "results differ"
print(f"{net}: medians of {len(rows[0])}, equal results")
for column, what in enumerate(["processor, in the program", "processor, with the system", "by the clock"]):
    alone, recorded = (statistics.median(float(r[column]) for r in rs) for rs in rows)
    print(f"  {what:26}  alone {alone:7.3f} s  recorded {recorded:7.3f} s  ratio {recorded / alone:.3f}")
EOF
done
