#!/usr/bin/env bash
# What `memdiag record` costs real programs that train: processor time, user's and system's, of the whole command alone and
# recorded, by turns, and of a step in the middle, and on average in the program's second half. Then what memdiag says.
# bench/cost.sh [PROGRAM …], of bench/cost, or "PROGRAM leak"; TURNS and RECORD (flags) can be set. Needs a Python with
# PyTorch and the libraries: PYTHON.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/memdiag/field/bin/python} turns=${TURNS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
memdiag=${MEMDIAG:-$work/memdiag}
[[ -n ${MEMDIAG:-} ]] || go build -o "$memdiag" ./cmd/memdiag
export OMP_NUM_THREADS=1 TIMEFORMAT="%U %S"
if [[ $# == 0 ]]; then
	for p in figures ppo gpt2 writer conv mlp; do set -- "$@" "$p" "$p leak"; done
fi
printf '%-14s %26s %26s %26s\n' "" "processor, seconds" "a step, ms" "its second half, ms"
for program; do
	read -r name how <<<"$program"
	: >"$work/alone"; : >"$work/recorded"
	for ((i = 0; i < turns; i++)); do
		{ time "$python" "bench/cost/$name.py" $how 2>"$work/err" >"$work/out"; } 2>"$work/took" || { cat "$work/err"; exit 1; }
		echo "$(cat "$work/took") $(tail -1 "$work/out")" >>"$work/alone"
		{ time "$memdiag" record -q ${RECORD:-} -o "$work/run$i" -- "$python" "bench/cost/$name.py" $how 2>"$work/err" >"$work/out"; } 2>"$work/took" || { cat "$work/err"; exit 1; }
		echo "$(cat "$work/took") $(tail -1 "$work/out")" >>"$work/recorded"
	done
	"$python" - "$program" "$work/alone" "$work/recorded" <<'PY'
import statistics, sys

name, *files = sys.argv[1:]
rows = [[[float(n) for n in line.split()] for line in open(f)] for f in files]
rows = [[(u + s, 1e3 * middle, 1e3 * late) for u, s, middle, late in r] for r in rows]
line = "%-14s" % name
for alone, recorded in zip(*([statistics.median(c) for c in zip(*r)] for r in rows)):
    line += "  %7.2f %7.2f  %5.2f x" % (alone, recorded, recorded / alone)
print(line)
PY
	"$memdiag" diff "$work/run0" 2>/dev/null | sed -n '1s/^/    /p'
	if [[ -n ${KEEP:-} ]]; then rm -rf "$KEEP/${program// /-}"; mv "$work/run0" "$KEEP/${program// /-}"; fi
	rm -rf "$work"/run*
done
