#!/bin/sh
# Measures matrix products beside OpenBLAS, in one run on one machine:
#
#     bench/gemm.sh [--repeats N] [SHAPE …]
#
# A SHAPE is COUNTxMxNxK, then -At or -Bt for a transposed operand, of those in engine/cpu/gemm/bench_test.go; "all" is all
# of them. Without any, the squares of 512 and 1024, with transposes. A line a shape and number of threads: GFLOP/s, medians of
# repeats that take turns, each being the fastest product in 0.2 s; and how many times OpenBLAS's speed ours is, with the
# widest vectors of the processor on both sides, and with AVX2 on both. OpenBLAS is that of numpy for the python that the
# variable PYTHON names (python3). To get numpy:
#
#     python3 -m venv .cache/numpy && .cache/numpy/bin/pip install numpy && PYTHON=.cache/numpy/bin/python bench/gemm.sh
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || {
	echo "bench/gemm.sh: $python has no numpy" >&2
	echo "hint: the first lines of this file say how to get it" >&2
	exit 1
}
repeats=7
if [ "${1-}" = --repeats ]; then
	repeats=$2
	shift 2
fi
[ $# -gt 0 ] || set -- 1x512x512x512 1x1024x1024x1024 1x1024x1024x1024-At 1x1024x1024x1024-Bt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go test -c -o "$tmp/gemm.test" ./engine/cpu/gemm
benchmarks=$("$tmp/gemm.test" -test.run '^$' -test.bench Multiply -test.benchtime 1x | sed -n 's,^BenchmarkMultiply/\(.*\),\1,p')
case $benchmarks in
*/avx2/*) ;;
*)
	echo "bench/gemm.sh: this processor has no AVX2, so nothing here compares" >&2
	exit 1
	;;
esac
if [ "$1" = all ]; then
	# shellcheck disable=SC2046 # a word a shape
	set -- $(echo "$benchmarks" | cut -d/ -f1 | uniq)
fi

seconds=0.2
ours() { # SHAPE KERNEL THREADS
	"$tmp/gemm.test" -test.run '^$' -test.bench "Multiply/^$1\$/^$2\$/^$3\$" -test.benchtime ${seconds}s |
		awk '{ for (i = 2; i <= NF; i++) if ($i == "fastest-GFLOP/s") print $(i - 1) }'
}
theirs() { # SHAPE THREADS [CORETYPE]
	(
		unset OPENBLAS_CORETYPE # without it, OpenBLAS chooses by the processor
		[ $# -lt 3 ] || export OPENBLAS_CORETYPE="$3"
		OPENBLAS_NUM_THREADS=$2 "$python" bench/gemm_peer.py "$1" $seconds
	)
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%.1f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

kernel=$(echo "$benchmarks" | cut -d/ -f2 | head -n 1)
core=$(theirs 1x32x32x64 1 | cut -d' ' -f2)
printf '%-24s %7s | %8s %8s %6s | %8s %8s %6s\n' shape threads "$kernel" "$core" ratio avx2 Haswell ratio
for shape in "$@"; do
	for threads in 1 2; do
		rm -f "$tmp"/*.out
		for _ in $(seq "$repeats"); do
			ours "$shape" "$kernel" $threads >>"$tmp/ours.out"
			theirs "$shape" $threads >>"$tmp/theirs.out"
			ours "$shape" avx2 $threads >>"$tmp/ours2.out"
			theirs "$shape" $threads Haswell >>"$tmp/theirs2.out"
		done
		echo "$shape $threads $(median "$tmp/ours.out") $(median "$tmp/theirs.out") $(median "$tmp/ours2.out") $(median "$tmp/theirs2.out")" |
			awk '{ printf "%-24s %7d | %8s %8s %6.2f | %8s %8s %6.2f\n", $1, $2, $3, $4, $3 / $4, $5, $6, $5 / $6 }'
	done
done
