#!/usr/bin/env bash
# What recording costs programs of plain Python and NumPy: user time alone and recorded, by turns, of
# bench/small_objects.py or of the scripts that are named. PYTHON and TURNS can be set.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} turns=${TURNS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/memdiag" ./cmd/memdiag
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TIMEFORMAT=%U
[ $# -gt 0 ] || set -- bench/small_objects.py "bench/small_objects.py leak"
for script; do
	: >"$work/alone"; : >"$work/recorded"
	for turn in $(seq "$turns"); do
		{ time "$python" $script >"$work/out"; } 2>>"$work/alone"
		{ time "$work/memdiag" record -q -o "$work/run$turn" -- "$python" $script >"$work/out"; } 2>>"$work/recorded"
	done
	middle=$(((turns + 1) / 2))
	alone=$(sort -n "$work/alone" | sed -n "${middle}p") recorded=$(sort -n "$work/recorded" | sed -n "${middle}p")
	said=$("$work/memdiag" diff "$work/run$turns" 2>/dev/null | head -1)
	awk -v s="$script" -v a="$alone" -v r="$recorded" -v d="$said" 'BEGIN { printf "%s: %.2f s alone, %.2f s recorded, %.2f times; %s\n", s, a, r, r / a, d }'
	rm -rf "$work"/run*
done
