#!/bin/sh
# Makes the fixtures of this folder: real profilers on programs that leak at one
# line. Needs gcc, heaptrack 1.4, valgrind 3.19, libjemalloc2 5.3 (Debian 12) and
# Python 3.11 with memray 1.20.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/leak.c" "$here/leak_py.py" "$work"
cd "$work"
gcc -g -O1 -fdebug-prefix-map="$work"=. -o leak leak.c

jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .* => //p' | head -1)
for steps in 10 30; do
	heaptrack --output "$here/heaptrack_$steps" ./leak $steps >/dev/null
	valgrind --quiet --tool=massif --detailed-freq=1 --max-snapshots=10 --massif-out-file="$here/massif_$steps.out" ./leak $steps
	# Every allocation is sampled, so that the figures are exact.
	MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:jeprof LD_PRELOAD=$jemalloc ./leak $steps
	mv jeprof.*.heap "$here/jemalloc_$steps.heap"
	memray run --quiet --force --output memray.bin leak_py.py $steps
	memray transform csv --leaks --force --output "$here/memray_$steps.csv" memray.bin >/dev/null
done
# One allocation in about 16 KiB, as in production.
MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:14,prof_prefix:jeprof LD_PRELOAD=$jemalloc ./leak 900
mv jeprof.*.heap "$here/jemalloc_sampled.heap"
python3 leak_py.py tracemalloc
mv tracemalloc_*.pickle "$here"
