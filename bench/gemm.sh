#!/bin/sh
# Measures matrix products beside OpenBLAS, in one run on one machine:
#
#     bench/gemm.sh [--repeats N] [SHAPE …]
#
# A SHAPE is COUNTxMxNxK, then -At or -Bt for a transposed operand, of those in engine/cpu/gemm/bench_test.go; "all" is all
# of them. Without any, the squares of 512 and 1024, with transposes. A line a shape and number of threads: GFLOP/s, medians of
# repeats that take turns, each being the fastest product in 0.2 s; and how many times OpenBLAS's speed ours is. OpenBLAS is that of numpy for the
# python that the variable PYTHON names (python3), once with the kernels that it chooses by itself and, where the processor
# has AVX-512, once with those for AVX-512, which it does not choose on every processor that has it. To get numpy:
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
if [ "$1" = all ]; then
	# shellcheck disable=SC2046 # a word a shape
	set -- $("$tmp/gemm.test" -test.run '^$' -test.bench Multiply -test.benchtime 1x | sed -n 's,^BenchmarkMultiply/\([^/]*\)/.*,\1,p' | uniq)
fi

seconds=0.2
ours() { # SHAPE KERNEL THREADS
	"$tmp/gemm.test" -test.run '^$' -test.bench "Multiply/^$1\$/^$2\$/^$3\$" -test.benchtime ${seconds}s |
		awk '{ for (i = 2; i <= NF; i++) if ($i == "fastest-GFLOP/s") print $(i - 1) }'
}
theirs() { # SHAPE THREADS CORETYPE
	(
		unset OPENBLAS_CORETYPE
		[ -z "$3" ] || export OPENBLAS_CORETYPE="$3"
		OPENBLAS_NUM_THREADS=$2 "$python" bench/gemm_peer.py "$1" $seconds
	)
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%.1f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

wide=
if grep -qw avx512f /proc/cpuinfo 2>/dev/null; then wide=1; fi
echo "OpenBLAS chooses $(theirs 1x32x32x64 1 '' | cut -d' ' -f2) by itself${wide:+ and $(theirs 1x32x32x64 1 SkylakeX | cut -d' ' -f2) for AVX-512}"
printf '%-24s %7s %8s %8s %9s %9s | %s\n' shape threads avx512 avx2 OpenBLAS "for 512" "ratios: chosen by itself, same instructions"
for shape in "$@"; do
	for threads in 1 2; do
		rm -f "$tmp"/out.*
		for _ in $(seq "$repeats"); do
			theirs "$shape" $threads '' >>"$tmp/out.chosen"
			ours "$shape" avx2 $threads >>"$tmp/out.avx2"
			[ -z "$wide" ] || ours "$shape" avx512 $threads >>"$tmp/out.avx512"
			[ -z "$wide" ] || theirs "$shape" $threads SkylakeX >>"$tmp/out.wide"
		done
		[ -n "$wide" ] || { cp "$tmp/out.avx2" "$tmp/out.avx512"; cp "$tmp/out.chosen" "$tmp/out.wide"; }
		echo "$shape $threads $(median "$tmp/out.avx512") $(median "$tmp/out.avx2") $(median "$tmp/out.chosen") $(median "$tmp/out.wide")" |
			awk '{ printf "%-24s %7d %8s %8s %9s %9s | %.2f, %.2f\n", $1, $2, $3, $4, $5, $6, $3 / $5, $3 / $6 }'
	done
done
