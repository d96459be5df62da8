#!/bin/sh
# Makes the profiles in this folder: real profilers on programs that leak at one
# line each. Needs Go 1.26, gcc, heaptrack 1.4, valgrind 3.19, libjemalloc2 5.3 and
# libgoogle-perftools4 2.10 (Debian 12); Python 3.11 with memray 1.20 and jax 0.10 as $PYTHON, and with
# torch 2.15 as $TORCH_PYTHON.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/leak* "$work"
cd "$work"

gcc -g -O1 -fdebug-prefix-map="$work"=. -o leak leak.c
tcmalloc=$(ldconfig -p | sed -n 's/.*libtcmalloc\.so\.4 .* => //p' | head -1)
jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .* => //p' | head -1)
for steps in 10 30; do
	heaptrack --output heaptrack_$steps ./leak $steps >/dev/null 2>&1
	heaptrack_print --print-leaks 1 heaptrack_$steps.zst >heaptrack_print_$steps.txt
	valgrind --quiet --tool=dhat --dhat-out-file=dhat_$steps.json ./leak $steps
	valgrind --quiet --tool=massif --detailed-freq=1 --max-snapshots=10 --massif-out-file=massif_$steps.out ./leak $steps
	# Every allocation is sampled, so that the figures are exact.
	MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:jeprof LD_PRELOAD=$jemalloc ./leak $steps
	mv jeprof.*.heap jemalloc_$steps.heap
	HEAPPROFILE=gperftools LD_PRELOAD=$tcmalloc ./leak $steps 2>/dev/null
	go tool pprof -proto -output gperftools_$steps.pb.gz leak "$(ls gperftools.*.heap | tail -1)" >/dev/null 2>&1
	mv "$(ls gperftools.*.heap | tail -1)" gperftools_$steps.heap
	rm -f gperftools.*.heap
	"$python" -m memray run --quiet --force --output memray.bin leak_python.py $steps
	"$python" -m memray transform csv --leaks --force --output memray_$steps.csv memray.bin >/dev/null
done
# One allocation in about 16 KiB, as in production.
MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:14,prof_prefix:jeprof LD_PRELOAD=$jemalloc ./leak 900
mv jeprof.*.heap jemalloc_sampled.heap

go run -trimpath leak.go
rm go_20.txt
gzip -n9 go_10.txt go_30.txt
"$python" leak_python.py tracemalloc
"$python" leak_jax.py
for held in 2 6; do
	"${TORCH_PYTHON:-$python}" leak_torch.py $held >/dev/null 2>&1
done
mv go_* jax_* gperftools_* heaptrack_* dhat_* massif_* jemalloc_* memray_*.csv tracemalloc_* profiler_* "$here"
