#!/usr/bin/env bash
# What `memdiag record` costs a training run: the time of its loop with and without, by turns, and the
# ratios of the medians: of the processor time, which says most on a busy machine, in the program alone and
# with the system, and by the clock. What is spent once is told apart from what each further step costs by a loop
# of 6,000 and of 30,000 steps. Needs a Python with PyTorch: MEMDIAG_TORCH_PYTHON, or what `make torch` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${MEMDIAG_TORCH_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/memdiag/torch/bin/python}
times=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/memdiag" ./cmd/memdiag
export OMP_NUM_THREADS=1
for net in conv mlp mlp-long; do
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
"$python" - "$work" <<'EOF'
import statistics, sys
alone, recorded = ([statistics.median(float(line.split()[1]) for line in open(f"{sys.argv[1]}/{net}.{how}")) for net in ("mlp", "mlp-long")]
                   for how in ("alone", "recorded"))
step = [(long - short) / 24_000 for short, long in (alone, recorded)]
print(f"mlp: each step from 6,000 to 30,000  alone {1e6 * step[0]:.0f} us  recorded {1e6 * step[1]:.0f} us  ratio {step[1] / step[0]:.3f}")
print(f"     and once, at the beginning      {recorded[0] - alone[0] - 6_000 * (step[1] - step[0]):.2f} s")
EOF
